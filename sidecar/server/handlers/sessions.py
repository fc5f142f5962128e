"""session/*."""

from sidecar.agent.config import RunSettings
from sidecar.agent.export import Exported, text_of
from sidecar.agent.sessions import Sessions
from sidecar.protocol.messages import (
    PageParams,
    SessionCompactResult,
    SessionCreateParams,
    SessionDeleteResult,
    SessionEventsParams,
    SessionEventsResult,
    SessionExportParams,
    SessionExportResult,
    SessionForkParams,
    SessionGetResult,
    SessionIdResult,
    SessionListResult,
    SessionParams,
)
from sidecar.server.handlers.paging import cursor_of, key_of, limit_of, no_cursor
from sidecar.server.rpc import Request
from sidecar.server.services import Services


async def create(request: Request, params: SessionCreateParams) -> SessionIdResult:
    """An empty session."""
    return SessionIdResult(session_id=request.services.sessions.create(params.title).session_id)


async def list_sessions(request: Request, params: PageParams) -> SessionListResult:
    """The last touched first."""
    services: Services = request.services
    limit = limit_of(params.limit)
    found = services.sessions.page(_after(params.cursor), limit + 1)
    shown = tuple(found[:limit])
    cursor = cursor_of(f"{shown[-1].updated_ms}:{shown[-1].session_id}") if len(found) > limit else None
    return SessionListResult(sessions=shown, next_cursor=cursor)


def _after(cursor: str | None) -> tuple[int, str] | None:
    """The last entry that the host was given: when it was touched, and its id."""
    if cursor is None:
        return None
    touched_ms, _, session_id = key_of(cursor).partition(":")
    if not touched_ms.isdecimal():
        raise no_cursor()
    return int(touched_ms), session_id


async def get(request: Request, params: SessionParams) -> SessionGetResult:
    """A session with its messages and runs."""
    sessions = request.services.sessions
    summary = sessions.get(params.session_id)
    return SessionGetResult(
        session_id=summary.session_id,
        title=summary.title,
        messages=tuple(sessions.messages(params.session_id)),
        runs=tuple(sessions.runs(params.session_id)),
    )


async def events(request: Request, params: SessionEventsParams) -> SessionEventsResult:
    """Events again, for a host that missed some."""
    found = request.services.sessions.events(params.session_id, params.run_id, params.after_seq)
    return SessionEventsResult(events=tuple(found))


async def fork(request: Request, params: SessionForkParams) -> SessionIdResult:
    """A copy that goes its own way."""
    session = request.services.sessions.fork(params.session_id, params.at_message)
    return SessionIdResult(session_id=session.session_id)


async def export(request: Request, params: SessionExportParams) -> SessionExportResult:
    """A document that people or programs can read."""
    sessions: Sessions = request.services.sessions
    exported = Exported(
        summary=sessions.get(params.session_id),
        messages=sessions.messages(params.session_id),
        runs=sessions.runs(params.session_id),
        events=sessions.events(params.session_id) if params.format == "json" else (),
    )
    return SessionExportResult(format=params.format, text=text_of(exported, params.format))


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
