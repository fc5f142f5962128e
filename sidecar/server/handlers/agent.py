"""agent/submit, agent/cancel, agent/steer."""

import asyncio

from attrs import evolve

from sidecar.agent.config import CycleConfig, RunSettings
from sidecar.agent.history import mended, says_nothing, user
from sidecar.agent.model_turn import Emit
from sidecar.agent.run import RunResult
from sidecar.agent.runs import Run, RunRequest, new_run_id
from sidecar.protocol.errors import TOOL_ERROR_KINDS, RequestError, SidecarError, invalid_params
from sidecar.protocol.events import AgentEvent, ToolExecutionProgress, ToolExecutionStarted, Warned
from sidecar.protocol.messages import (
    CancelParams,
    CancelResult,
    SteerParams,
    SteerResult,
    SubmitParams,
    SubmitResult,
)
from sidecar.protocol.values import Content, Message
from sidecar.server.handlers.scope import invocation_scope
from sidecar.server.rpc import Request
from sidecar.server.services import Services


async def submit(request: Request, params: SubmitParams) -> SubmitResult:
    """One run. The answer comes after its last event; with `wait: false` at once."""
    services: Services = request.services
    messages = _messages(params)
    _check(params)
    settings = _settings(services, params)
    sessions = services.sessions
    if params.run_id is not None:
        sessions.check_new(params.run_id)
    session_id = params.session_id or sessions.create().session_id
    run_id = params.run_id or new_run_id()

    async def emit(event: AgentEvent) -> None:
        await services.host.emit(session_id, run_id, event)
        _show_progress(request, event)

    run = await sessions.start(
        session_id,
        RunRequest(
            run_id=run_id,
            messages=messages,
            settings=settings,
            scope=invocation_scope(services, session_id=session_id, run_id=run_id, emit=emit),
            prepare=lambda emit: _prepare(services, emit),
        ),
        queue=params.queue is True,
    )
    if params.wait is False:
        return SubmitResult(session_id=run.session_id, run_id=run.run_id)
    return await _finished(run)


async def _finished(run: Run) -> SubmitResult:
    """Waits for the run; a cancelled request cancels it, and its last event still comes before the answer."""
    assert run.task is not None
    try:
        await asyncio.wait([run.task])
    except asyncio.CancelledError:
        run.cancel("the request was cancelled")
        await asyncio.wait([run.task])
        raise _cancelled(run) from None
    if run.task.cancelled():
        raise _cancelled(run)
    try:
        result: RunResult = run.task.result()
    except SidecarError as error:
        error.data.update(sessionId=run.session_id, runId=run.run_id)
        raise
    return SubmitResult(
        session_id=run.session_id,
        run_id=run.run_id,
        stop_reason=result.stop_reason,
        message=result.message,
        turns=result.turns,
        usage=result.usage,
    )


def _cancelled(run: Run) -> RequestError:
    return RequestError("requestCancelled", "the run was cancelled", sessionId=run.session_id, runId=run.run_id)


async def cancel(request: Request, params: CancelParams) -> CancelResult:
    """Cancels by either id; what is over or unknown is no error."""
    if params.session_id is None and params.run_id is None:
        raise invalid_params("params.sessionId", "is required where runId is absent")
    services: Services = request.services
    cancelled = services.sessions.cancel(session_id=params.session_id, run_id=params.run_id)
    return CancelResult(cancelled=cancelled)


async def steer(request: Request, params: SteerParams) -> SteerResult:
    """Says something to a running run."""
    services: Services = request.services
    _said(params.prompt)
    run = services.sessions.find_run(params.run_id)
    if run is None and not services.sessions.has_run(params.run_id):
        raise RequestError("runNotFound", f"there is no run {params.run_id!r}", runId=params.run_id)
    return SteerResult(accepted=run is not None and run.steering.say(params.prompt))


def _messages(params: SubmitParams) -> tuple[Message, ...]:
    match params:
        case SubmitParams(prompt=None, messages=None):
            raise invalid_params("params.prompt", "is required where messages is absent")
        case SubmitParams(prompt=None, messages=tuple() as messages):
            history, faults = mended(messages)
            if not history:
                raise invalid_params("params.messages", "; ".join(["must not be empty", *faults]))
            return messages
        case SubmitParams(messages=None):
            return (_said(params.prompt),)
        case _:
            raise invalid_params("params.messages", "must be absent where prompt is given")


def _said(prompt: Content | None) -> Message:
    """The message of a prompt that says something."""
    if prompt is None or says_nothing(prompt):
        raise invalid_params("params.prompt", "must not be empty")
    return user(prompt)


def _check(params: SubmitParams) -> None:
    """The limits that a type cannot state."""
    for kind in params.error_policy or {}:
        if kind not in TOOL_ERROR_KINDS:
            known = ", ".join(TOOL_ERROR_KINDS)
            raise invalid_params(f"params.errorPolicy.{kind}", f"is no error kind; known are {known}")
    at_least_one = {"maxTurns": params.max_turns, "maxOutputTokens": params.max_output_tokens}
    for name, value in at_least_one.items():
        if value is not None and value < 1:
            raise invalid_params(f"params.{name}", f"must be at least 1, not {value}")
    if params.tool_timeout_secs is not None and params.tool_timeout_secs <= 0:
        raise invalid_params("params.toolTimeoutSecs", f"must be more than 0, not {params.tool_timeout_secs}")
    if params.run_id == "":
        raise invalid_params("params.runId", "must not be empty")


def _settings(services: Services, params: SubmitParams) -> RunSettings:
    provider, model, label = services.models.resolve(params.model)
    return RunSettings(
        provider=provider,
        model=model,
        label=label,
        system=params.system if params.system is not None else services.system,
        registry=services.registry,
        selector=params.tools,
        temperature=params.temperature,
        max_output_tokens=params.max_output_tokens,
        config=_config(services.cycle, params),
    )


def _config(config: CycleConfig, params: SubmitParams) -> CycleConfig:
    if params.max_turns is not None:
        config = evolve(config, max_turns=params.max_turns)
    if params.tool_timeout_secs is not None:
        config = evolve(config, tool_timeout_secs=params.tool_timeout_secs)
    if params.error_policy is not None:
        config = evolve(config, error_policy={**config.error_policy, **params.error_policy})
    return config


async def _prepare(services: Services, emit: Emit) -> None:
    """Waits, within `serverWaitSecs`, for servers that still start, and says what was mended meanwhile."""
    late = await services.servers.wait_started(services.server_wait_secs)
    for notice in services.notices.take():
        await emit(notice)
    for name in late:
        await emit(
            Warned(
                code="serverStarting",
                message=f"MCP server {name!r} is still starting; its tools join in a later turn",
            )
        )


def _show_progress(request: Request, event: AgentEvent) -> None:
    """The editor's own progress bar, where the submit came with a `workDoneToken`."""
    match event:
        case ToolExecutionStarted(tool_name=name):
            request.work_done.report(name)
        case ToolExecutionProgress(message=str(message)):
            request.work_done.report(message)
        case _:
            pass
