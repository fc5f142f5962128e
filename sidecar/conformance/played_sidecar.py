"""The sidecar that a host under test talks to. It says what a conversation has it say.

The host starts `stand_in.py`, which connects to here; everything is decided here. A host may start
it more than once: each process is a `Life`.
"""

import asyncio
import json
import secrets
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from sidecar.conformance.frames import Body, FrameReader
from sidecar.conformance.lives import Life, News, read_piece
from sidecar.conformance.matching import fill, shown
from sidecar.conformance.shapes import params_fault, protocol_version, published, result_fault
from sidecar.protocol.values import JsonObject

STAND_IN = Path(__file__).with_name("stand_in.py")
USAGE = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}

Id = int | str


@define(kw_only=True)
class Run:
    """A run that the host has submitted."""

    run_id: str
    session_id: str
    request_id: Any
    waits: bool
    """Whether the answer to the submit comes at the end."""
    is_answered: bool = False
    events: list[JsonObject] = field(factory=list)


@frozen(kw_only=True)
class Complaint:
    """What one of the watches saw; `watch` is its name in the rules."""

    watch: str
    why: str


class PlayedSidecar:
    """What a conversation says and hears as the sidecar; use it as an async context manager.

    `start` may hold `agent` (fields of `experimental.agentSidecar`), `result` (fields of the result of
    `initialize`) and `obeys` (which of `exit` and `endOfInput` make it end; both, where that is absent).
    """

    def __init__(self, conversation: str, start: JsonObject, names: dict[str, Any], news: News) -> None:
        self.command: list[str] = []
        """What the host has to run."""
        self.wanted: frozenset[str] = frozenset()
        """Methods that steps wait for; requests with others are answered at once."""
        self.unread: list[JsonObject] = []
        self.frames: list[JsonObject] = []
        self.read_up_to = 0
        """How many frames came until the one that was read last, that one included."""
        self.answers: dict[Id, JsonObject] = {}
        self.runs: dict[str, Run] = {}
        self.lives: list[Life] = []
        self.complaints: list[Complaint] = []
        self.seen: set[str] = set()
        """Watches that had something to look at."""
        self._conversation = conversation
        self._start = start
        self._names = names
        self._news = news
        self._asked: dict[Id, str] = {}
        self._open_ids: set[Any] = set()
        self._token = secrets.token_hex(16)
        names["initialize.result"] = self.hello()

    async def __aenter__(self) -> "PlayedSidecar":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.command = [sys.executable, "-I", "-S", str(STAND_IN), str(port), self._token]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for life in self.lives:
            life.writer.close()  # The stand-in ends with it.

    @property
    def life(self) -> Life | None:
        """The process that was started last."""
        return self.lives[-1] if self.lives else None

    @property
    def is_deserted(self) -> bool:
        """Whether no host is connected."""
        return all(life.input_closed for life in self.lives)

    # To the host -----------------------------------------------------------------------------------------

    def send(self, template: Any) -> None:
        """Sends a frame. A request whose id is a text goes out under `CONVERSATION/ID`."""
        frame = fill(template, self._names)
        if not isinstance(frame, dict):
            self._write_frame(frame)
            return
        frame = {"jsonrpc": "2.0", **frame}
        if "method" in frame and "id" in frame:
            label, wire_id = frame["id"], frame["id"]
            if isinstance(label, str):
                wire_id = f"{self._conversation}/{label}"
            self._names[f"id:{label}"] = frame["id"] = wire_id
            self._asked[wire_id] = frame["method"]
        elif "method" in frame:
            self.seen.add("notifications")
        else:
            self._open_ids.discard(frame.get("id"))
        self._write_frame(frame)

    def tell(self, name: str, event: Any, beside: JsonObject, *, missed: bool = False) -> None:
        """Sends an event of a run, unless it is to be missed; `beside` are more fields of the notification."""
        run = self.runs[name]
        params = {"sessionId": run.session_id, "runId": run.run_id, "seq": len(run.events)}
        params = {**params, "event": fill(event, self._names), **fill(beside, self._names)}
        run.events.append(params)
        if not missed:
            self.send({"method": "agent/event", "params": {"$literal": params}})

    def finish(self, name: str, event: JsonObject, answer: JsonObject | None, *, missed: bool = False) -> None:
        """Ends a run, by its last event and by the answer to its submit."""
        run = self.runs[name]
        completed = {"type": "runCompleted", "stopReason": "stop", "usage": USAGE, **fill(event, self._names)}
        self.tell(name, {"$literal": completed}, {}, missed=missed)
        if run.waits and not missed:
            given = fill(answer, self._names) if answer else self._outcome(run, completed)
            self.answer_run(name, given)

    def accept(self, name: str) -> None:
        """Answers a submit with `wait: false` by the two ids; without effect on others."""
        run = self.runs[name]
        if not run.waits and not run.is_answered:
            self.answer_run(name, {"result": {"sessionId": run.session_id, "runId": run.run_id}})

    def answer_run(self, name: str, answer: JsonObject) -> None:
        """Answers a submit, once."""
        run = self.runs[name]
        if not run.is_answered:
            run.is_answered = True
            self.reply(run.request_id, answer)

    def reply(self, request_id: Any, answer: JsonObject) -> None:
        """Answers a request of the host; without effect where it had no id of its own."""
        if request_id is None:
            return
        self._open_ids.discard(request_id)
        self._write_frame({"jsonrpc": "2.0", "id": request_id, **fill(answer, self._names)})

    def cut_off(self, template: Any) -> None:
        """Writes a frame whose header promises one byte more than there is."""
        if self.life:
            self.life.cut_off({"jsonrpc": "2.0", **fill(template, self._names)})

    def _write_frame(self, message: Any) -> None:
        if self.life:
            self.life.send(message)

    def _outcome(self, run: Run, completed: JsonObject) -> JsonObject:
        if completed["stopReason"] == "cancelled":
            return {"error": {"code": -32800, "message": "cancelled", "data": {"kind": "requestCancelled"}}}
        if completed.get("error"):
            return {"error": {"$literal": completed["error"]}}
        text = "".join(
            str(each["event"].get("text", ""))
            for each in run.events
            if each["event"].get("type") == "assistantTextDelta"
        )
        ids = {"sessionId": run.session_id, "runId": run.run_id}
        message = {"role": "assistant", "content": text}
        said = {"stopReason": completed["stopReason"], "message": message, "turns": 1, "usage": USAGE}
        return {"result": {"$literal": {**ids, **said}}}

    # From the host ---------------------------------------------------------------------------------------

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (await reader.readline()).strip() != self._token.encode():
            writer.close()
            return
        life = Life(writer=writer)
        self.lives.append(life)
        self._open_ids.clear()
        self._news.tell()
        frames = FrameReader()
        with suppress(OSError, asyncio.IncompleteReadError):
            while data := await read_piece(reader):
                for found in frames.feed(data):
                    self._take_bytes(found.data, is_frame=isinstance(found, Body))
                self._news.tell()
            life.input_closed = True
            if self._obeys("endOfInput"):
                life.order(exit=0)
            self._news.tell()
            await reader.read(1)  # Nothing comes but the end of the process.
        life.input_closed = life.gone = True
        self._news.tell()

    def _take_bytes(self, data: bytes, *, is_frame: bool) -> None:
        self.seen.add("frames")
        if not is_frame:
            self._complain("frames", f"these bytes are no frame: {shown(data.decode('utf-8', 'replace'))}")
            return
        try:
            message = json.loads(data)
        except ValueError:
            self._complain("frames", f"a body that is not JSON: {shown(data.decode('utf-8', 'replace'))}")
            return
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            self._complain("frames", f"no message of JSON-RPC 2.0: {shown(message)}")
        if isinstance(message, dict):
            self._take(message)

    def _take(self, frame: JsonObject) -> None:
        is_first = not self.frames
        self.frames.append(frame)
        if is_first:
            self.seen.add("firstMessage")
            if frame.get("method") != "initialize" or "id" not in frame:
                self._complain("firstMessage", f"the first message is {shown(frame)}")
        if "method" not in frame:
            self._take_answer(frame)
            return
        self._look_at_params(frame)
        if "id" in frame and not self._is_new_id(frame):
            # It cannot be answered: the answer would be taken for the other's.
            frame = self.frames[-1] = {name: value for name, value in frame.items() if name != "id"}
        if frame["method"] in self.wanted:
            self.unread.append(frame)
        else:
            self.answer_as_usual(frame)

    def _take_answer(self, frame: JsonObject) -> None:
        answered = frame.get("id")
        if answered is None:
            self._complain("notifications", f"an answer to a notification: {shown(frame)}")
            return
        known = self._id_of_ours(answered)
        if known is None:
            return
        self.seen.add("once")
        if known in self.answers:
            self._complain("once", f"a second answer to {self._asked[known]}: {shown(frame)}")
            return
        self.answers[known] = frame
        self.seen.add("schema")
        fault = result_fault(self._asked[known], frame["result"]) if "result" in frame else None
        if fault:
            self._complain("schema", f"the answer to {self._asked[known]}: {fault}")

    def _id_of_ours(self, answered: Any) -> Id | None:
        """The request that is meant, also where its id came back as a text instead of a number or the reverse."""
        return next((known for known in self._asked if str(known) == str(answered)), None)

    def _look_at_params(self, frame: JsonObject) -> None:
        self.seen.add("schema")
        if fault := params_fault(str(frame["method"]), frame.get("params")):
            self._complain("schema", f"{frame['method']}: {fault}")

    def _is_new_id(self, frame: JsonObject) -> bool:
        """Whether a request is one of its own; its id may not be in use."""
        self.seen.add("ids")
        key = json.dumps(frame["id"])
        if frame["id"] in self._open_ids:
            self._complain("ids", f"{frame['method']} has the id {key} of a request that still runs")
            return False
        self._open_ids.add(frame["id"])
        return True

    def _complain(self, watch: str, why: str) -> None:
        self.complaints.append(Complaint(watch=watch, why=why))

    # What no step is about -------------------------------------------------------------------------------

    def read(self, frame: JsonObject) -> None:
        """A step has taken this frame."""
        self.unread = [other for other in self.unread if other is not frame]
        self.read_up_to = 1 + next(n for n, other in enumerate(self.frames) if other is frame)

    def want(self, methods: frozenset[str]) -> None:
        """From here on steps wait for these methods; what they waited for before is answered now."""
        self.wanted = methods
        left = [frame for frame in self.unread if frame["method"] not in methods]
        self.unread = [frame for frame in self.unread if frame["method"] in methods]
        for frame in left:
            self.answer_as_usual(frame)

    def begin_run(self, name: str, submit: JsonObject) -> Run:
        """Takes a submit as the run that the conversation calls `name`."""
        params = submit.get("params") or {}
        number = len(self.runs) + 1
        run = Run(
            run_id=params.get("runId") or f"run-{number}",
            session_id=params.get("sessionId") or f"session-{number}",
            request_id=submit.get("id"),
            waits=params.get("wait") is not False,
        )
        self.runs[name] = run
        self._names.update({f"{name}.runId": run.run_id, f"{name}.sessionId": run.session_id})
        self._names[f"{name}.id"] = run.request_id
        return run

    def answer_as_usual(self, frame: JsonObject) -> None:
        """Reacts to a request or notification as a sidecar does that has nothing special in mind."""
        method, params = frame["method"], frame.get("params") or {}
        if method == "agent/submit":
            self._play_a_run(frame)
        elif method == "exit":
            if self.life and self._obeys("exit"):
                self.life.order(exit=0)
        elif "id" in frame:
            self.reply(frame["id"], self._default_answer(method, params if isinstance(params, dict) else {}))

    def _obeys(self, end: str) -> bool:
        return end in self._start.get("obeys", ("exit", "endOfInput"))

    def _play_a_run(self, submit: JsonObject) -> None:
        name = f"unasked {len(self.runs)}"
        self.begin_run(name, submit)
        self.accept(name)
        self.tell(name, {"type": "runStarted", "model": "played/one"}, {})
        self.finish(name, {}, None)

    def _default_answer(self, method: str, params: JsonObject) -> JsonObject:
        if method == "initialize":
            return {"result": {"$literal": self.hello()}}
        if method == "session/events":
            return {"result": {"events": {"$literal": self._events_after(params)}}}
        if method in DEFAULTS:
            return {"result": {"$literal": DEFAULTS[method](params)}}
        message = f"{method} is not part of this conversation"
        return {"error": {"code": -32601, "message": message, "data": {"kind": "methodNotFound"}}}

    def hello(self) -> JsonObject:
        """The result of `initialize`."""
        agent = {
            "protocolVersion": protocol_version(),
            "methods": [name for name, row in published()["methods"].items() if row["sender"] == "host"],
            "events": list(published()["events"]),
            "models": ["played/one"],
            **self._start.get("agent", {}),
        }
        capabilities = {"experimental": {"agentSidecar": agent}}
        served = {"capabilities": capabilities, "serverInfo": {"name": "conformance-kit"}}
        return {**served, **self._start.get("result", {})}

    def _events_after(self, params: JsonObject) -> list[JsonObject]:
        after = params.get("afterSeq")
        return [
            event
            for run in self.runs.values()
            if run.session_id == params.get("sessionId") and params.get("runId") in (None, run.run_id)
            for event in run.events
            if event["seq"] > (-1 if after is None else after)
        ]


DEFAULTS: Mapping[str, Callable[[JsonObject], Any]] = {
    "shutdown": lambda params: None,
    "agent/cancel": lambda params: {"cancelled": True},
    "agent/steer": lambda params: {"accepted": True},
    "session/create": lambda params: {"sessionId": "session-made"},
    "session/list": lambda params: {"sessions": []},
    "tools/list": lambda params: {"tools": []},
    "tools/register": lambda params: {"registered": [each.get("name") for each in params.get("tools", [])]},
    "tools/unregister": lambda params: {"unregistered": params.get("names", [])},
    "models/list": lambda params: {"models": [{"model": "played/one", "provider": "played"}]},
    "mcp/list": lambda params: {"servers": []},
}
"""What a request is answered that no step waits for; every other method is unknown to this sidecar."""
