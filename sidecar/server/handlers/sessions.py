"""session/*."""

from sidecar.agent.config import RunSettings
from sidecar.protocol.messages import (
    PageParams,
    SessionCompactResult,
    SessionCreateParams,
    SessionDeleteResult,
    SessionEventsParams,
    SessionEventsResult,
    SessionForkParams,
    SessionGetResult,
    SessionIdResult,
    SessionListResult,
    SessionParams,
)
from sidecar.server.handlers.paging import page
from sidecar.server.rpc import Request
from sidecar.server.services import Services


async def create(request: Request, params: SessionCreateParams) -> SessionIdResult:
    """An empty session."""
    return SessionIdResult(session_id=request.services.sessions.create(params.title).session_id)


async def list_sessions(request: Request, params: PageParams) -> SessionListResult:
    """The last touched first."""
    summaries = [session.summary() for session in request.services.sessions.all()]
    shown, cursor = page(summaries, lambda s: s.session_id, cursor=params.cursor, limit=params.limit)
    return SessionListResult(sessions=shown, next_cursor=cursor)


async def get(request: Request, params: SessionParams) -> SessionGetResult:
    """A session with its messages and runs."""
    session = request.services.sessions.get(params.session_id)
    return SessionGetResult(
        session_id=session.session_id,
        title=session.title,
        messages=session.cycle.messages(),
        runs=tuple(run.summary() for run in session.runs.values()),
    )


async def events(request: Request, params: SessionEventsParams) -> SessionEventsResult:
    """Events again, for a host that missed some."""
    session = request.services.sessions.get(params.session_id)
    after = -1 if params.after_seq is None else params.after_seq
    runs = [run for run in session.runs.values() if params.run_id in (None, run.run_id)]
    return SessionEventsResult(events=tuple(event for run in runs for event in run.events if event.seq > after))


async def fork(request: Request, params: SessionForkParams) -> SessionIdResult:
    """A copy that goes its own way."""
    session = request.services.sessions.fork(params.session_id, params.at_message)
    return SessionIdResult(session_id=session.session_id)


async def compact(request: Request, params: SessionParams) -> SessionCompactResult:
    """As small as it gets: all but the latest run summed up, by the default model where there is one."""
    services: Services = request.services
    done = await services.sessions.compact(params.session_id, _settings(services))
    return SessionCompactResult(before_tokens=done.before_tokens, after_tokens=done.after_tokens)


def _settings(services: Services) -> RunSettings | None:
    if services.models.default is None or services.cycle.summary == "rule":
        return None
    provider, model, label = services.models.resolve(None)
    return RunSettings(provider=provider, model=model, label=label, config=services.cycle)


async def delete(request: Request, params: SessionParams) -> SessionDeleteResult:
    """Ends what runs in it, then forgets it."""
    deleted = await request.services.sessions.delete(params.session_id)
    request.services.permissions.forget_session(params.session_id)
    return SessionDeleteResult(deleted=deleted)
