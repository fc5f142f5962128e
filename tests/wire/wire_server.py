"""The wire with handlers made for tests. `tools/call` does what the tool's name says, `agent/submit` emits events.

Run it as a script. The host's `initializationOptions` say how the services open and close: see Options.
"""

# ruff: noqa: E402, T201, ASYNC221, ASYNC240  The collector rests first, and tools do here what tools should not.

import gc

gc.disable()  # As the product does while it imports; see sidecar/__main__.py.

import asyncio
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from attrs import field, frozen
from lsprotocol import types

from sidecar.protocol.codec import decode
from sidecar.protocol.errors import ConfigurationError, ToolError
from sidecar.protocol.events import (
    AgentEvent,
    AssistantReasoningDelta,
    AssistantTextDelta,
    RunCompleted,
    RunStarted,
    ToolExecutionProgress,
    Warned,
)
from sidecar.protocol.messages import (
    AgentEventParams,
    ApprovalOption,
    PermissionRule,
    SubmitParams,
    SubmitResult,
    ToolOutcome,
    ToolsCallParams,
    ToolsCallResult,
    ToolsChangedParams,
    ToolsExecuteParams,
    ToolsListParams,
    ToolsListResult,
)
from sidecar.protocol.values import Usage
from sidecar.server.guard import take_standard_streams
from sidecar.server.host import Host
from sidecar.server.initialize import Initialization, Opened
from sidecar.server.log import configure_logging
from sidecar.server.questions import Questions
from sidecar.server.rpc import Handler, Request, SidecarServer
from sidecar.server.sign_in_page import SignInPage
from sidecar.server.stdio import serve_stdio
from sidecar.server.unanswered import HostError
from sidecar.tools.approval import ApprovalQuestion


@frozen(kw_only=True)
class Options:
    """How the services behave."""

    fail: str | None = None
    hang: bool = False
    announce: bool = False
    max_frame_bytes: int | None = None
    hang_at_close: bool = False
    close_file: str | None = None


@frozen(kw_only=True)
class Services:
    """What the handlers work with. `seen` keeps what happened, for tests to ask."""

    host: Host
    init: Initialization
    options: Options
    seen: list[Any] = field(factory=list)
    ticks: list[int] = field(factory=lambda: [0])
    watchers: dict[int, asyncio.Event] = field(factory=dict)
    sent: list[AgentEventParams] = field(factory=list)
    may_tidy: asyncio.Event = field(factory=asyncio.Event)

    def keep(self, event: AgentEventParams) -> bool:
        self.sent.append(event)
        return True


opened: list[str] = []


async def open_services(init: Initialization, host: Host) -> Opened:
    options = decode(init.options or {}, Options, path="params.initializationOptions")
    opened.append("opened")
    if options.announce:
        host.notify("tools/changed", ToolsChangedParams(added=("early",), removed=(), changed=()))
    if options.hang:
        await asyncio.Event().wait()
    match options.fail:
        case "configuration":
            raise ConfigurationError("there is no such model", path="model")
        case "crash":
            raise ValueError("sk-secret")
    services = Services(host=host, init=init, options=options)
    host.keep_events(services.keep)
    asyncio.get_running_loop().call_later(TICK_SECS, tick, services)
    return Opened(services=services, models=("scripted/one",), max_frame_bytes=options.max_frame_bytes)


TICK_SECS = 0.01


def tick(services: Services) -> None:
    services.ticks[0] += 1
    if watcher := services.watchers.pop(services.ticks[0], None):
        watcher.set()
    asyncio.get_running_loop().call_later(TICK_SECS, tick, services)


async def close_services(services: Services) -> None:
    if services.options.close_file is not None:
        Path(services.options.close_file).write_text("closed")
    if services.options.hang_at_close:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.Event().wait()  # Deaf to its cancellation.


# tools/call ---------------------------------------------------------------------------------------------


async def echo(request: Request, arguments: Any) -> Any:
    return arguments


async def wait(request: Request, arguments: Any) -> Any:
    """Waits for its cancellation; its cleanup waits for `let_tidy` where it is told to."""
    services: Services = request.services
    services.seen.append("waiting")
    try:
        await asyncio.Event().wait()
    finally:
        services.seen.append("tidying")
        if arguments.get("slowly"):
            await services.may_tidy.wait()
        services.seen.append("tidied")


async def let_tidy(request: Request, arguments: Any) -> Any:
    request.services.may_tidy.set()


async def hold(request: Request, arguments: Any) -> Any:
    await asyncio.Event().wait()


async def note(request: Request, arguments: Any) -> Any:
    request.services.seen.append(arguments["number"])
    await asyncio.sleep(0)


async def deaf(request: Request, arguments: Any) -> Any:
    """Ends by itself, with a result, when it is cancelled."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return "all the same"


async def stubborn(request: Request, arguments: Any) -> Any:
    """Does not end at all when it is cancelled."""
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            request.services.seen.append("cancelled")


async def seen(request: Request, arguments: Any) -> Any:
    return request.services.seen


async def watch_ticks(request: Request, arguments: Any) -> Any:
    """Says on stderr when the services have ticked so many times more."""
    services: Services = request.services
    ticked = asyncio.Event()
    services.watchers[services.ticks[0] + arguments["ticks"]] = ticked
    await ticked.wait()
    print(f"ticked {arguments['ticks']} times", file=sys.stderr)


async def noise(request: Request, arguments: Any) -> Any:
    """Prints to stdout in every way there is, and lets a child do it, and lets one read stdin."""
    print("Content-Length: 2\r\n\r\n{}")
    print("no line end", end="", flush=True)
    os.write(1, b"raw bytes\n")
    subprocess.run([sys.executable, "-c", "print('from a child')"], check=True)
    read = subprocess.run([sys.executable, "-c", "print(len(input() or ''))"], capture_output=True)
    return read.returncode


async def print_much(request: Request, arguments: Any) -> Any:
    print("x" * arguments["bytes"])
    print("y" * arguments["bytes"], file=sys.stderr)


async def block(request: Request, arguments: Any) -> Any:
    """Holds up the event loop."""
    print("blocking", file=sys.stderr)
    threading.Event().wait(arguments["secs"])


async def block_a_thread(request: Request, arguments: Any) -> Any:
    request.services.seen.append("blocked")
    await asyncio.to_thread(threading.Event().wait, arguments["secs"])


async def crash(request: Request, arguments: Any) -> Any:
    raise ValueError("bad key: sk-secret")


async def crash_in_cleanup(request: Request, arguments: Any) -> Any:
    try:
        await asyncio.Event().wait()
    finally:
        raise ValueError("bad key: sk-secret")


async def leave(request: Request, arguments: Any) -> Any:
    sys.exit(3)


async def refuse(request: Request, arguments: Any) -> Any:
    raise ToolError("notFound", "there is no tool 'x'", tool="x", nearest="y")


async def refuse_oddly(request: Request, arguments: Any) -> Any:
    raise ToolError("other", "odd", what=object())


async def give_a_set(request: Request, arguments: Any) -> Any:
    return {"a", "b"}


async def give_nan(request: Request, arguments: Any) -> Any:
    return float("nan")


async def give_much(request: Request, arguments: Any) -> Any:
    return "x" * arguments["bytes"]


async def approve(request: Request, arguments: Any) -> Any:
    services: Services = request.services
    rule = PermissionRule(tool="write_file", decision="allow", arguments={"path": "src/**"})
    question = ApprovalQuestion(
        request_id="q1",
        session_id="s1",
        run_id="r1",
        call_id="c1",
        tool_name="write_file",
        input=arguments.get("input", {"path": "src/a.py"}),
        permissions=("write",),
        reason="write is to be asked about",
        title="Run write_file?",
        options=(
            ApprovalOption(decision="allowOnce", label="Allow"),
            ApprovalOption(decision="allowAlways", label="Allow", rule=rule),
            ApprovalOption(decision="deny", label="Deny"),
        ),
    )
    questions = Questions(services.host, deadline_secs=arguments.get("deadlineSecs", 5.0))
    answer = await questions.approve(question)
    return {
        "decision": answer.decision,
        "by": answer.by,
        "rule": answer.rule and answer.rule.tool,
        "reason": answer.reason,
        "updatedInput": answer.updated_input,
        "explanation": answer.explanation,
    }


async def ask_input(request: Request, arguments: Any) -> Any:
    questions = Questions(request.services.host, deadline_secs=5.0)
    return await questions.ask_input(source="a test", message="Which?", schema=arguments.get("schema"))


async def show_sign_in(request: Request, arguments: Any) -> Any:
    """Has the host show a sign-in page; tells what became of it."""
    host: Host = request.services.host
    page = SignInPage(host, Questions(host, deadline_secs=5.0))
    return list(await page.show("github", "https://example.com/authorize?state=x"))


async def ask_host(request: Request, arguments: Any) -> Any:
    """Asks the host to run a tool; tells what came of it."""
    params = ToolsExecuteParams(call_id="c1", name="x", arguments={})
    try:
        result = await request.services.host.request("tools/execute", params, arguments.get("deadlineSecs", 5.0))
    except HostError as error:
        return {"failed": type(error).__name__, "message": str(error)}
    return {"ok": result.ok}


async def ask_by_pygls(request: Request, arguments: Any) -> Any:
    """Asks and tells by the methods that pygls has for it."""
    server = lsp_server[0]
    answer = await server.workspace_configuration_async(types.ConfigurationParams(items=[]))
    server.window_log_message(types.LogMessageParams(type=types.MessageType.Info, message="done"))
    server.protocol.notify("custom/bare")
    return answer


async def bookkeeping(request: Request, arguments: Any) -> Any:
    protocol = lsp_server[0].protocol
    gc.collect()
    return {
        "unanswered": len(protocol.unanswered),
        "running": len(protocol._running),
        "tasks": len(asyncio.all_tasks()),
        "pyglsFutures": len(protocol._request_futures),
        "waitingBytes": protocol.outbox.waiting_bytes,
    }


async def document(request: Request, arguments: Any) -> Any:
    workspace = lsp_server[0].workspace
    return {uri: text.source for uri, text in workspace.text_documents.items()}


async def introduction(request: Request, arguments: Any) -> Any:
    services: Services = request.services
    return {
        "folders": [str(folder) for folder in services.init.workspace_folders],
        "client": services.init.client_name,
        "processId": services.init.process_id,
        "showMessage": services.host.capabilities.show_message,
        "approvals": services.host.capabilities.approvals,
        "optOutEvents": sorted(services.host.capabilities.opt_out_events),
    }


async def capabilities_in_pygls(request: Request, arguments: Any) -> Any:
    general = lsp_server[0].client_capabilities.general
    return {"positionEncodings": general and general.position_encodings}


async def report(request: Request, arguments: Any) -> Any:
    request.work_done.report("half", done=1, total=2)


async def announce(request: Request, arguments: Any) -> Any:
    request.services.host.notify("tools/changed", ToolsChangedParams(added=("x",), removed=(), changed=()))


async def notify_nonsense(request: Request, arguments: Any) -> Any:
    request.services.host.notify("window/logMessage", {"type": 3, "message": {1, 2}})


async def recorded(request: Request, arguments: Any) -> Any:
    """The numbers of the events as the listener saw them, and the text of the deltas among them."""
    sent: list[AgentEventParams] = request.services.sent
    text = "".join(event.event.text for event in sent if isinstance(event.event, AssistantTextDelta))
    return {"seq": [event.seq for event in sent], "text": text}


TOOLS = {
    tool.__name__: tool
    for tool in (
        echo, wait, let_tidy, hold, note, deaf, stubborn, seen, watch_ticks, noise, print_much, block,
        block_a_thread, crash, crash_in_cleanup, leave, refuse, refuse_oddly, give_a_set, give_nan,
        give_much, approve, ask_input, show_sign_in, ask_host, ask_by_pygls, capabilities_in_pygls, bookkeeping,
        document, introduction, report, announce, notify_nonsense, recorded,
    )
}  # fmt: skip


async def call_tool(request: Request, params: ToolsCallParams) -> ToolsCallResult:
    data = await TOOLS[params.name](request, params.arguments or {})
    return ToolsCallResult(
        call_id=params.call_id or "",
        tool_name=params.name,
        input={},
        result=ToolOutcome(ok=True, data=data),
        content=(),
        duration_ms=0,
        truncated=False,
    )


# agent/submit and tools/list ----------------------------------------------------------------------------


async def submit(request: Request, params: SubmitParams) -> SubmitResult:
    """Emits what the prompt, a JSON list of `[type, text, times]`, says, between a first and a last event."""
    services: Services = request.services
    run_id = params.run_id or "run"
    assert isinstance(params.prompt, str)

    async def emit(event: AgentEvent) -> None:
        await services.host.emit("session", run_id, event)

    try:
        await emit(RunStarted(model="scripted/one"))
        for kind, text, times in json.loads(params.prompt):
            for _ in range(times):
                await emit(made(kind, text))
        await emit(RunCompleted(stop_reason="stop", usage=Usage()))
    finally:
        services.host.end_run("session", run_id)
    return SubmitResult(session_id="session", run_id=run_id)


def made(kind: str, text: str) -> AgentEvent:
    match kind:
        case "text":
            return AssistantTextDelta(text=text)
        case "reasoning":
            return AssistantReasoningDelta(text=text)
        case "progress":
            return ToolExecutionProgress(call_id="c1", message=text)
        case "nonsense":
            return ToolExecutionProgress(call_id="c1", partial={1, 2})
        case _:
            return Warned(code="test", message=text)


async def list_tools(request: Request, params: ToolsListParams) -> ToolsListResult:
    return ToolsListResult(tools=(), next_cursor=params.cursor)


HANDLERS: dict[str, Handler] = {"tools/call": call_tool, "tools/list": list_tools, "agent/submit": submit}

lsp_server: list[SidecarServer] = []


def main() -> None:
    streams = take_standard_streams()
    configure_logging(None, "info")
    lsp_server.append(SidecarServer(HANDLERS, open_services, close_services))
    gc.freeze()
    gc.enable()
    serve_stdio(lsp_server[0], streams)


if __name__ == "__main__":
    main()
