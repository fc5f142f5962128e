"""Sidecar: spawn it, talk to it, end it."""

import asyncio
import os
import secrets
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, TypedDict, Unpack

from sidecar_client.callbacks import call, guarded
from sidecar_client.connection import Answerer, Connection, Question
from sidecar_client.errors import BrokenStream, ClientError, NoAnswer, SidecarExited
from sidecar_client.frames import JsonObject
from sidecar_client.handshake import described_by, initialize_params
from sidecar_client.models import ModelCall, as_completion
from sidecar_client.process import SidecarProcess
from sidecar_client.resuming import answer_of, catch_up, told_end
from sidecar_client.runs import Position, Run
from sidecar_client.tools import HostTool, Tool, ToolCall, as_host_tool

DEFAULT_COMMAND = (sys.executable, "-P", "-m", "sidecar")
"""The sidecar installed beside this library; it serves when its stdin is a pipe.

`-P` keeps the folder it starts in, which may hold anything, from being looked at for Python modules.
"""


NOT_AN_ANSWER = (BrokenStream, NoAnswer, SidecarExited)
"""What ends a wait without an answer."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How long anything is waited for, in seconds."""

    start_secs: float = 30.0
    """From the spawn to the answer to `initialize`."""
    request_secs: float = 60.0
    """For an answer, unless the request says otherwise."""
    run_silence_secs: float = 3600.0
    """For the next event of a run. People answer approvals meanwhile, and some tools take their time."""
    exit_secs: float = 5.0
    """For the answer to `shutdown`, and at each step that ends the process: its stdin closed (after which the
    protocol gives it five seconds), SIGTERM, SIGKILL."""


class SubmitParams(TypedDict, total=False):
    """What `agent/submit` takes beside the prompt; see protocol.md."""

    messages: list[JsonObject]
    session_id: str
    run_id: str
    model: str
    system: str
    tools: JsonObject
    max_turns: int
    tool_timeout_secs: float
    error_policy: dict[str, str]
    temperature: float
    max_output_tokens: int
    queue: bool
    work_done_token: str | int


class Sidecar:
    """A sidecar process and the conversation with it; use it as an async context manager.

    `options` are the protocol's `initializationOptions`. `command` is what to run, `cwd` its folder and the
    first workspace folder. Callbacks may be async functions, or plain ones, which run in a thread of their own:

    - `on_approval(question)` returns a decision (`"allowOnce"`, `"deny"`, …) or a whole result;
    - `on_input(question)` returns the content, or None to decline, or a whole result;
    - `on_model(call)` lends a model, as `host/NAME`: it returns the text of the answer, or a whole result;
    - `tools` are functions or HostTools that the model may call;
    - `answerers` answer further methods by name.

    Without a callback the sidecar is told that this host cannot do the thing. `on_notification(method, params)`
    and `on_stderr(line)` are called on the event loop, in order, and must not block. A question that is withdrawn
    cancels its callback.
    """

    def __init__(
        self,
        options: Mapping[str, Any] | None = None,
        *,
        command: Sequence[str] = DEFAULT_COMMAND,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        on_approval: Callable[[JsonObject], Any] | None = None,
        on_input: Callable[[JsonObject], Any] | None = None,
        on_model: Callable[[ModelCall], Any] | None = None,
        tools: Iterable[Tool] = (),
        answerers: Mapping[str, Answerer] | None = None,
        on_notification: Callable[[str, JsonObject], None] | None = None,
        on_stderr: Callable[[str], None] | None = None,
        opt_out_events: Sequence[str] = (),
        limits: Limits | None = None,
    ) -> None:
        self._options = options or {}
        self._command = tuple(command)
        self._cwd = Path(cwd or ".").resolve()
        self._env = env
        self._on_approval = on_approval
        self._on_input = on_input
        self._on_model = on_model
        self._on_notification = guarded(on_notification) if on_notification else None
        self._on_stderr = guarded(on_stderr) if on_stderr else None
        self._opt_out_events = opt_out_events
        self._limits = limits or Limits()
        self._tools = {tool.name: tool for tool in map(as_host_tool, tools)}
        self._runs: dict[str, Run] = {}
        self._driving: set[asyncio.Task[None]] = set()
        self._deciding: dict[str, asyncio.Task[Any]] = {}
        self._connection = Connection({**self._answerers(), **(answerers or {})}, self._take_notification)
        self._process: SidecarProcess | None = None
        self.server: JsonObject = {}
        """What it said of itself: `{protocolVersion, methods, events, models}`."""

    async def __aenter__(self) -> "Sidecar":
        """Raises CannotStart, SidecarExited, BrokenStream, NoAnswer, or RequestFailed for wrong options."""
        self._process = await SidecarProcess.start(
            self._command,
            cwd=self._cwd,
            env=self._env,
            on_message=self._connection.receive,
            on_lost=self._connection.lose,
            on_stderr=self._on_stderr,
        )
        self._connection.attach(self._process)
        try:
            await self._shake_hands()
        except BaseException:
            await self._process.stop(self._limits.exit_secs)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Ends what runs, then the process: `shutdown`, `exit`, and force where that is not enough."""
        if self._process is None:
            return
        try:
            await self.request("shutdown", {}, limit_secs=self._limits.exit_secs)
            self.notify("exit", {})
        except ClientError:
            pass  # It is gone or stuck; stopping the process deals with both.
        finally:
            await self._process.stop(self._limits.exit_secs)
            await self._connection.finish()
            await _finish(self._driving)

    def kill(self) -> None:
        """Ends the process and its group at once; what waits raises SidecarExited. `aclose` is still due."""
        if self._process:
            self._process.kill_group()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def status(self) -> int | None:
        """Exit status of the process, None while it runs."""
        return self._process.status if self._process else None

    @property
    def stderr_tail(self) -> str:
        """The last lines that the process wrote to stderr."""
        return self._process.stderr_tail if self._process else ""

    # To the sidecar --------------------------------------------------------------------------------------

    def submit(self, prompt: str | list[JsonObject] | None = None, **params: Unpack[SubmitParams]) -> Run:
        """Starts a run at once, in a new session unless `session_id` is given.

        Raises ValueError or TypeError for parameters that are not JSON and for a `run_id` that is running;
        everything else is raised by the run.
        """
        asked: JsonObject = {_camel(name): value for name, value in params.items()}
        asked.setdefault("runId", secrets.token_hex(16))
        if prompt is not None:
            asked["prompt"] = prompt
        if asked["runId"] in self._runs:
            raise ValueError(f"a run {asked['runId']!r} is running already")
        run = self._new_run(asked["runId"], params.get("session_id"))
        try:
            question = self._connection.ask("agent/submit", asked)
        except ClientError as error:
            run.end(error)
        else:
            self._follow(run, question)
        return run

    def resume(self, left: Run | Position) -> Run:
        """Goes on with a run whose events were missed: those after the last that was seen, then what still comes.

        A run that a process took with it is ended by the next sidecar, and its last event says so. Raises
        ValueError for a run that is running here; everything else is raised by the run.
        """
        if left.run_id in self._runs:
            raise ValueError(f"a run {left.run_id!r} is running already")
        run = self._new_run(left.run_id, left.session_id)
        run.go_on_from(left)
        try:
            question = self._connection.expect("session/events")
        except ClientError as error:
            run.end(error)
        else:
            run.on_completed = lambda event: question.settle(answer_of(run, event))
            self._follow(run, question)
            self._own(self._catch_up(run, question))
        return run

    async def request(
        self, method: str, params: Mapping[str, Any] | None = None, *, limit_secs: float | None = None
    ) -> Any:
        """Any method of the protocol. Raises RequestFailed, NoAnswer, SidecarExited or BrokenStream."""
        return await self._connection.request(
            method, dict(params or {}), limit_secs=limit_secs or self._limits.request_secs
        )

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Any notification of the protocol."""
        self._connection.notify(method, dict(params or {}))

    async def register_tools(self, *tools: Tool) -> None:
        """Offers more tools, from the next turn on. Raises RequestFailed when a name is taken."""
        added = {tool.name: tool for tool in map(as_host_tool, tools)}
        await self.request("tools/register", {"tools": [tool.definition() for tool in added.values()]})
        self._tools.update(added)

    async def unregister_tools(self, *names: str) -> None:
        """Takes tools back, from the next turn on."""
        await self.request("tools/unregister", {"names": list(names)})
        for name in names:
            self._tools.pop(name, None)

    async def _shake_hands(self) -> None:
        params = initialize_params(
            options=self._options,
            folder=self._cwd,
            answers_approvals=self._on_approval is not None,
            answers_input=self._on_input is not None,
            lends_models=self._on_model is not None,
            opt_out_events=self._opt_out_events,
        )
        result = await self.request("initialize", params, limit_secs=self._limits.start_secs)
        self.server = described_by(result)
        self.notify("initialized", {})
        if self._tools:
            await self.register_tools(*self._tools.values())

    def _new_run(self, run_id: str, session_id: str | None) -> Run:
        return Run(run_id, session_id, self.request, asyncio.get_running_loop().time)

    def _follow(self, run: Run, question: Question) -> None:
        self._runs[run.run_id] = run
        self._own(self._drive(run, question))

    async def _catch_up(self, run: Run, question: Question) -> None:
        try:
            await catch_up(run, self.request)
        except ClientError as error:
            question.settle(error)

    def _own(self, driving: Coroutine[Any, Any, None]) -> None:
        """Runs it as a task that ends with this sidecar at the latest."""
        task = asyncio.get_running_loop().create_task(driving)
        self._driving.add(task)
        task.add_done_callback(self._driving.discard)

    async def _drive(self, run: Run, question: Question) -> None:
        """Waits for the answer to a submit, for as long as the run is heard of; whatever comes ends the run."""
        limit_secs = self._limits.run_silence_secs
        outcome: JsonObject | ClientError = ClientError("the sidecar was closed before the run had ended")
        try:
            while not question.answer.done() and run.silence_secs < limit_secs:
                await question.is_answered_within(limit_secs - run.silence_secs)
            if not question.answer.done():
                raise NoAnswer(question.method, limit_secs)
            outcome = question.result()
        except ClientError as error:
            outcome = told_end(run) if isinstance(error, NOT_AN_ANSWER) and run.completed else error
        finally:
            self._connection.forget(question)
            self._runs.pop(run.run_id, None)
            run.end(outcome)

    # From the sidecar ------------------------------------------------------------------------------------

    def _answerers(self) -> dict[str, Answerer]:
        answerers: dict[str, Answerer] = {"tools/execute": self._execute_tool}
        if self._on_approval:
            answerers["agent/requestApproval"] = self._decide
        if self._on_input:
            answerers["agent/requestInput"] = self._give_input
        if self._on_model:
            answerers["model/complete"] = self._complete
        return answerers

    async def _decide(self, question: JsonObject) -> Any:
        assert self._on_approval
        task, request_id = asyncio.current_task(), question.get("requestId", "")
        assert task
        self._deciding[request_id] = task
        try:
            decision = await call(self._on_approval, question)
        finally:
            self._deciding.pop(request_id, None)
        return {"decision": decision} if isinstance(decision, str) else decision

    async def _give_input(self, question: JsonObject) -> Any:
        assert self._on_input
        content = await call(self._on_input, question)
        if content is None:
            return {"action": "decline"}
        is_whole = isinstance(content, dict) and content.get("action") in ("accept", "decline", "cancel")
        return content if is_whole else {"action": "accept", "content": content}

    async def _complete(self, params: JsonObject) -> Any:
        assert self._on_model
        loop = asyncio.get_running_loop()

        def report(text: str) -> None:
            delta = {"requestId": params["requestId"], "text": text}
            loop.call_soon_threadsafe(self.notify, "model/delta", delta)

        return as_completion(await call(self._on_model, ModelCall(request=params, report=report)))

    async def _execute_tool(self, params: JsonObject) -> JsonObject:
        """Runs a tool; what it raises is told to the model, which may try another way."""
        tool: HostTool | None = self._tools.get(params["name"])
        if tool is None:
            return {"ok": False, "error": f"this host has no tool {params['name']!r}"}
        try:
            data = await tool.run(params["arguments"], self._tool_call(params))
        except Exception as error:  # noqa: BLE001  the boundary of a tool of the host's
            return {"ok": False, "error": f"{type(error).__name__}: {error}"}
        return {"ok": True} if data is None else {"ok": True, "data": data}

    def _tool_call(self, params: JsonObject) -> ToolCall:
        loop = asyncio.get_running_loop()

        def report(value: JsonObject) -> None:
            progress = {"token": params["callId"], "value": {"kind": "report", **value}}
            loop.call_soon_threadsafe(self.notify, "$/progress", progress)

        return ToolCall(
            call_id=params["callId"],
            session_id=params.get("sessionId"),
            run_id=params.get("runId"),
            report=report,
        )

    def _take_notification(self, method: str, params: JsonObject) -> None:
        if method == "agent/event":
            self._drop_what_is_resolved(params.get("event"))
        run = self._runs.get(params.get("runId", "")) if method == "agent/event" else None
        if run and isinstance(params.get("event"), dict):
            run.take(params)
        elif self._on_notification:
            self._on_notification(method, params)

    def _drop_what_is_resolved(self, event: Any) -> None:
        """An approval that was decided elsewhere is no question any more."""
        is_resolved = isinstance(event, dict) and event.get("type") == "approvalResolved"
        deciding = self._deciding.get(event.get("requestId", "")) if is_resolved else None
        if deciding:
            deciding.cancel()


async def _finish(tasks: set[asyncio.Task[None]]) -> None:
    """The process is gone, so each of these has its outcome already or in a moment."""
    for task in list(tasks):
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(word.capitalize() for word in tail)
