"""Plays the sidecar's side of the wire from a script, for tests of hosts. Standard library only.

    python scripted_sidecar.py SCRIPT.json [LOG]

The script maps a method to the steps that answer it; a list of lists gives each further request its own. LOG
gets every message received, one JSON a line, and LOG.heard all frames, for `frames.py`. `initialize`, `shutdown`
and `exit` are answered without a script. In a step, "$id", "$runId" and "$sessionId" stand for those of the
request being answered; what a question of the protocol must have and the script does not give is added. Steps:

    {"event": {…}}                    an agent/event, numbered
    {"notify": {"method", "params"}}  any notification
    {"ask": {"id", "method", "params"}}         a request to the host; goes on when it is answered
    {"withdraw": {"id", "method", "params"}}    a request and its $/cancelRequest at once; goes on when answered
    {"wait": "method"}                goes on when the host has sent this
    {"gate": "path"}                  goes on when somebody opens this FIFO for writing
    {"result": …} {"error": {…}}      the answer; without either there is none
    {"raw": "…"} {"stderr": "…"}      text to stdout, not framed, or to stderr
    {"exit": 3}                       the end of the process

With "isOdd": true beside it, what a step sends is wrong on purpose and not heard.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

JsonObject = dict[str, Any]

AGENT = {"protocolVersion": "1.0", "methods": [], "events": [], "models": ["scripted/one"]}
DEFAULT_SCRIPT: JsonObject = {
    "initialize": [{"result": {"capabilities": {"experimental": {"agentSidecar": AGENT}}}}],
    "shutdown": [{"result": None}],
    "exit": [{"exit": 0}],
    "tools/register": [{"result": {"registered": []}}],
}

QUESTIONS: JsonObject = {
    "agent/requestApproval": {
        "requestId": "apr-0",
        "callId": "c-0",
        "toolName": "write_file",
        "input": {},
        "permissions": ["write"],
        "reason": "permissions.ask",
        "title": "Run write_file",
        "options": [{"decision": "allowOnce", "label": "Allow once"}, {"decision": "deny", "label": "Deny"}],
        "deadlineMs": 60_000,
    },
    "agent/requestInput": {"requestId": "inp-0", "message": "?", "source": "a tool", "deadlineMs": 60_000},
    "model/complete": {"requestId": "mod-0", "messages": [], "tools": [], "idleTimeoutMs": 60_000},
}
"""What is added to a question: all that must be there."""


def scripted(folder: Path, script: JsonObject) -> tuple[str, ...]:
    """The command that plays `script`; what it receives goes to `folder`, for `received`."""
    path = folder / "script.json"
    path.write_text(json.dumps(script))
    from tests.harness.frames import LEDGER  # Not above: what plays the script has the standard library alone.

    LEDGER.listen(folder)
    return (sys.executable, __file__, str(path), str(folder / "received.jsonl"))


def heard_in(log: Path) -> Path:
    """Where all frames go, those that were sent, too."""
    return log.with_name(f"{log.name}.heard")


def received(folder: Path) -> list[JsonObject]:
    """Every message that the host has sent so far."""
    return [json.loads(line) for line in (folder / "received.jsonl").read_text().splitlines()]


class ScriptedSidecar:
    """One conversation over stdin and stdout."""

    def __init__(self, script: JsonObject, log: Path | None) -> None:
        self._script = {**DEFAULT_SCRIPT, **script}
        self._log = log
        self._seq = 0

    def serve(self) -> None:
        self._take_messages(until=lambda _: False)

    def _take_messages(self, until: Callable[[JsonObject], bool]) -> None:
        """Handles messages up to and with the first that `until` takes."""
        while True:
            message = read_frame()
            if message is None:
                sys.exit(0)
            if self._log:
                with self._log.open("a") as log:
                    log.write(json.dumps(message) + "\n")
            self._keep(b">", frame(message))
            if "method" in message:
                self._play(message)
            if until(message):
                return

    def _play(self, request: JsonObject) -> None:
        steps = self._script.get(request["method"])
        if steps is None:
            if "id" in request and not request["method"].startswith("$/"):
                error = {"code": -32601, "message": f"unscripted method {request['method']}"}
                self._send({"id": request["id"], "error": {**error, "data": {"kind": "methodNotFound"}}})
            return
        if steps and isinstance(steps[0], list):
            steps = steps.pop(0)
        if request["method"] == "agent/submit":
            self._seq = 0
        for step in filled_in(steps, request):
            self._take_step(step, request)

    def _take_step(self, step: JsonObject, request: JsonObject) -> None:
        is_odd = step.get("isOdd", False)
        match step:
            case {"event": event}:
                params = filled_in({"sessionId": "$sessionId", "runId": "$runId", "seq": self._seq}, request)
                self._send({"method": "agent/event", "params": {**params, "event": event}}, is_odd=is_odd)
                self._seq += 1
            case {"notify": message}:
                self._send(completed(message), is_odd=is_odd)
            case {"ask": question}:
                self._send(completed(question), is_odd=is_odd)
                self._take_messages(until=lambda message: is_answer(message, question["id"]))
            case {"withdraw": question}:
                self._send(completed(question), {"method": "$/cancelRequest", "params": {"id": question["id"]}})
                self._take_messages(until=lambda message: is_answer(message, question["id"]))
            case {"wait": method}:
                self._take_messages(until=lambda message: message.get("method") == method)
            case {"gate": path}:
                Path(path).read_bytes()
            case {"result": _} | {"error": _}:
                answer = {name: value for name, value in step.items() if name != "isOdd"}
                self._send({"id": request["id"], **answer}, is_odd=is_odd)
            case {"raw": text}:
                write(text.encode())
            case {"stderr": text}:
                sys.stderr.write(text)
                sys.stderr.flush()
            case {"exit": status}:
                sys.exit(status)

    def _send(self, *messages: JsonObject, is_odd: bool = False) -> None:
        frames = b"".join(frame({"jsonrpc": "2.0", **message}) for message in messages)
        if not is_odd:
            self._keep(b"<", frames)
        write(frames)

    def _keep(self, mark: bytes, data: bytes) -> None:
        if self._log:
            with heard_in(self._log).open("ab") as heard:
                heard.write(b"%b%d\n%b" % (mark, len(data), data))


def completed(message: JsonObject) -> JsonObject:
    """The message with all that must be there."""
    known = QUESTIONS.get(message["method"], {})
    return {**message, "params": {**known, **message.get("params", {})}}


def is_answer(message: JsonObject, request_id: Any) -> bool:
    return "method" not in message and message.get("id") == request_id


def filled_in(value: Any, request: JsonObject) -> Any:
    """The value with its placeholders replaced."""
    params = request.get("params") or {}
    known = {"$id": request.get("id"), "$runId": params.get("runId"), "$sessionId": params.get("sessionId", "s-1")}
    if isinstance(value, dict):
        return {key: filled_in(entry, request) for key, entry in value.items()}
    if isinstance(value, list):
        return [filled_in(entry, request) for entry in value]
    return known.get(value, value) if isinstance(value, str) else value


def frame(message: JsonObject) -> bytes:
    body = json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def read_frame() -> JsonObject | None:
    size = 0
    while (line := sys.stdin.buffer.readline().strip()) != b"":
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            size = int(value)
    body = sys.stdin.buffer.read(size) if size else b""
    message: JsonObject | None = json.loads(body) if body else None
    return message


def write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    script_path, *log_path = sys.argv[1:]
    ScriptedSidecar(json.loads(Path(script_path).read_text()), Path(log_path[0]) if log_path else None).serve()
