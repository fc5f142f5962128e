"""What hosts in tests and sidecars say to each other, held to the published schema.

A Conversation hears both sides. What does not fit is a complaint, and a complaint fails the test that it was heard
in. What a sidecar sends has to fit always. What a host of a test sends has to fit, unless it is wrong on purpose:
a complaint of a request goes away when the sidecar refuses it, and what no sidecar refuses is sent `being_odd`.

Source: protocol.md, Notation and ground rule 2; JSON-RPC 2.0, sections 4 and 5. The rest is our own choice.
"""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from sidecar.conformance.frames import Body, FrameReader

Json = dict[str, Any]

SCHEMA: Json = json.loads((Path(__file__).parents[2] / "clients/protocol.schema.json").read_text("utf-8"))

NOT_IN_SCHEMA = frozenset(
    {
        # LSP's own, as far as the protocol uses them. In `initialize` the places are held to it that are ours.
        "initialize",
        "initialized",
        "shutdown",
        "exit",
        "$/cancelRequest",
        "$/progress",
        "client/registerCapability",
        "textDocument/didOpen",
        "textDocument/didChange",
        "textDocument/didSave",
        "textDocument/didClose",
        "window/logMessage",
        "window/showDocument",
        "window/showMessageRequest",
        "workspace/applyEdit",
        "workspace/didChangeWatchedFiles",
        "workspace/didChangeWorkspaceFolders",
        # Features that `tests/wire/wire_server.py` has beside the protocol.
        "textDocument/completion",
        "textDocument/definition",
        "textDocument/hover",
        "workspace/configuration",
        "workspace/executeCommand",
        "custom/bare",
        "custom/echo",
    }
)
"""Methods that may occur and are passed over. Every other one is in the schema, or fails."""

REFUSALS = {-32700, -32600, -32601, -32602, -32002}
"""Codes of answers to a request that is wrong, or too early to be looked at."""

MOST_CHARACTERS = 300
"""So much is shown of a frame, and of a complaint of the validator."""


class Ledger:
    """The complaints of all conversations, and how much was heard."""

    def __init__(self) -> None:
        self.frames = 0
        self.shapes: set[int] = set()
        """Hashes of what has been found to fit; see `shape_of`."""
        self._complaints: dict[object, str] = {}
        self._folders: set[Path] = set()

    def listen(self, folder: Path) -> None:
        """Processes keep what they hear in this folder, each in a file `….heard`; `take` reads them."""
        self._folders.add(folder)

    def read(self, folder: Path) -> None:
        """What was heard in this folder so far."""
        for log in folder.glob("*.heard"):
            read_log(log.read_bytes(), self)
            log.unlink()

    def complain(self, key: object, text: str) -> None:
        """Something does not fit. Under its key it can be withdrawn."""
        self._complaints[key] = f"{os.environ.get('PYTEST_CURRENT_TEST', 'no test')}\n  {text}"

    def withdraw(self, key: object) -> None:
        """What was wrong was refused."""
        self._complaints.pop(key, None)

    def take(self) -> list[str]:
        """The complaints so far, which are dealt with now."""
        while self._folders:
            self.read(self._folders.pop())
        taken, self._complaints = self._complaints, {}
        return list(taken.values())


LEDGER = Ledger()
"""Of this process; `tests/conftest.py` looks into it after each test."""


class Conversation:
    """One host and one sidecar: which answer belongs to which request, in both directions."""

    def __init__(self, ledger: Ledger = LEDGER) -> None:
        self._ledger = ledger
        self._number = next(_NUMBERS)
        self._asked: dict[str, dict[str, str]] = {"host": {}, "sidecar": {}}
        self._is_odd = False
        self._has_unseen = False

    def sent(self, frame: Any) -> None:
        """The host sends this."""
        fault = self._fault(frame, "host", "sidecar")
        if fault is not None and not self._is_odd:
            self._ledger.complain(self._key(frame), f"sent {shortened(frame)}\n  {fault}")

    def received(self, frame: Any) -> None:
        """The sidecar sends this."""
        fault = self._fault(frame, "sidecar", "host")
        if fault is not None:
            self._ledger.complain(object(), f"received {shortened(frame)}\n  {fault}")
        if _is_refusal(frame):
            self._ledger.withdraw(self._key(frame))

    @contextmanager
    def being_odd(self) -> Iterator[None]:
        """What the host sends in the block is wrong on purpose."""
        self._is_odd = True
        try:
            yield
        finally:
            self._is_odd = False

    def sent_unseen(self) -> None:
        """The host sends bytes that nobody looks at: from now on there may be results of unknown requests."""
        self._has_unseen = True

    def _key(self, frame: Any) -> object:
        """The same for a request and its answer. Where no id can be read, the answer has null."""
        request_id = frame.get("id") if isinstance(frame, dict) else None
        return self._number, json.dumps(request_id if isinstance(request_id, int | str) else None)

    def _fault(self, frame: Any, sender: str, other: str) -> str | None:
        self._ledger.frames += 1
        if not isinstance(frame, dict) or frame.get("jsonrpc") != "2.0":
            return "$.jsonrpc: no message of JSON-RPC 2.0"
        if "method" in frame:
            return self._fault_in_message(frame, sender)
        return self._fault_in_answer(frame, other)

    def _fault_in_message(self, frame: Json, sender: str) -> str | None:
        method, params = frame["method"], frame.get("params", {})
        if not isinstance(method, str):
            return "$.method: must be a string"
        if "id" in frame:
            self._asked[sender][json.dumps(frame["id"])] = method
        if method == "initialize" and sender == "host":
            return self._misfit(method, "params", params)
        if method in NOT_IN_SCHEMA:
            return None
        row = SCHEMA["methods"].get(method)
        if row is None or row["sender"] != sender:
            return f"$.method: nothing that a {sender} sends"
        if ("id" in frame) != ("result" in row):
            return f"$.id: {method} is a {'request' if 'result' in row else 'notification'}"
        is_nothing = sender == "host" and params in (None, [])  # A host may say so; protocol.md, Notation.
        return self._misfit(method, "params", {} if is_nothing else params)

    def _fault_in_answer(self, frame: Json, asker: str) -> str | None:
        if "id" not in frame or ("result" in frame) == ("error" in frame):
            return "$: an answer has an id, and either a result or an error"
        method = self._asked[asker].pop(json.dumps(frame["id"]), None)
        if "error" in frame:
            return _fault_in_error(frame["error"], is_ours=asker == "host")
        if method is None:
            return None if self._has_unseen else "$.id: the result of no request"
        if method == "initialize" and asker == "host":
            return self._misfit(method, "result", frame["result"])
        if method in NOT_IN_SCHEMA:
            return None
        if "result" not in SCHEMA["methods"].get(method, {}):
            return f"$.result: {method!r} has none"
        return self._misfit(method, "result", frame["result"])

    def _misfit(self, method: str, part: str, value: Any) -> str | None:
        shape = hash((method, part, shape_of(value)))
        if shape in self._ledger.shapes:
            return None
        fault = misfit(method, part, value)
        if fault is None:
            self._ledger.shapes.add(shape)
        return fault


_NUMBERS = count()


def listened(folder: Path, command: Sequence[str]) -> list[str]:
    """The command of a sidecar that is heard, whoever starts it; where that cannot be, the command alone."""
    if sys.platform == "win32":
        return [*command]
    LEDGER.listen(folder)
    return [sys.executable, "-I", "-S", str(Path(__file__).with_name("listening.py")), str(folder), *command]


def read_log(content: bytes, ledger: Ledger) -> None:
    """Hears a conversation from a log: pieces of bytes, each after its direction and its length."""
    conversation = Conversation(ledger)
    readers = {b">": FrameReader(), b"<": FrameReader()}
    hear = {b">": conversation.sent, b"<": conversation.received}
    pieces = list(_pieces(content))
    if all(mark == b"<" for mark, _ in pieces):
        return  # Nobody has spoken to it: no host, but somebody who asks for its version.
    for mark, data in pieces:
        for found in readers[mark].feed(data):
            hear[mark](json.loads(found.data) if isinstance(found, Body) else repr(found.data))


def _pieces(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    position = 0
    while (end := content.find(b"\n", position)) >= 0:
        start, length = end + 1, int(content[position + 1 : end])
        yield content[position : position + 1], content[start : start + length]
        position = start + length


def _is_refusal(frame: Any) -> bool:
    error = frame.get("error") if isinstance(frame, dict) else None
    return isinstance(error, dict) and error.get("code") in REFUSALS


def _fault_in_error(error: Any, *, is_ours: bool) -> str | None:
    if not isinstance(error, dict) or type(error.get("code")) is not int:
        return "$.error: an error has an integer code"
    if not isinstance(error.get("message"), str):
        return "$.error: an error has a message"
    return _misfit_of_kind(error, "$.error") if is_ours else None


def _misfit_of_kind(error: Json, place: str) -> str | None:
    data = error.get("data")
    kind = data.get("kind") if isinstance(data, dict) else None
    if SCHEMA["errors"].get(kind) == error["code"]:
        return None
    return f"{place}.data.kind: {kind!r} is not the kind of {error['code']} (schema: errors)"


def shortened(frame: Any) -> str:
    """The beginning of a frame."""
    text = json.dumps(frame)
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}… ({len(text)} characters)"


# Against the schema -------------------------------------------------------------------------------------


def misfit(method: str, part: str, value: Any) -> str | None:
    """What is wrong with the `params` or the `result` of a method, with the places in it and in the schema."""
    if method == "initialize":
        return next(_misfits_of_handshake(part, value), None)
    fault = _misfit_of_event(value) if method == "agent/event" else None
    return fault or _first_fault(SCHEMA["methods"][method][part], f"methods/{method}/{part}", value, f"$.{part}")


def _misfits_of_handshake(part: str, value: Any) -> Iterator[str]:
    """Of the places in `initialize` that are ours. One that is not there, or is empty, has nothing wrong."""
    for place, schema in SCHEMA["handshake"].items():
        first, *names = place.split(".")
        inside = value if first == part else None
        for name in names:
            inside = inside.get(name) if isinstance(inside, dict) else None
        if inside not in (None, []) and (
            fault := _first_fault(schema, f"handshake/{place}", inside, f"$.{place}")
        ):
            yield fault


def _misfit_of_event(params: Any) -> str | None:
    """The event by its own type: what the schema says of all types at once names a fault less well."""
    event = params.get("event") if isinstance(params, dict) else None
    if not isinstance(event, dict):
        return None
    kind = event.get("type")
    if kind not in SCHEMA["events"]:
        return f"$.params.event.type: {kind!r} is no event (schema: events)"
    fault = _first_fault(SCHEMA["events"][kind], f"events/{kind}", event, "$.params.event")
    error = event.get("error")
    return fault or (_misfit_of_kind(error, "$.params.event.error") if error else None)


def _first_fault(schema: Json, name: str, value: Any, place: str) -> str | None:
    validator = Draft202012Validator({**schema, "$defs": SCHEMA["$defs"]})
    error = best_match(validator.iter_errors(value))
    if error is None:
        return None
    path = "/".join(map(str, [name, *error.absolute_schema_path]))
    return f"{place}{error.json_path[1:]}: {error.message[:MOST_CHARACTERS]} (schema: {path})"


def shape_of(value: Any, *, keep: bool = False) -> Any:
    """All of a value that the schema can tell apart: names, types, and the strings where it lists some.

    Frames are many and their shapes few; so each shape is validated once.
    """
    kind = type(value)
    if kind is dict:
        return tuple([(name, shape_of(each, keep=keep or name in LISTED)) for name, each in value.items()])
    if kind is list:
        return frozenset([shape_of(each, keep=keep) for each in value])
    if kind is str:
        return value if keep else str
    return int if kind is float and value.is_integer() else kind


def _lists_values(schema: Any) -> bool:
    """Whether the schema lists what a value, an entry of a list or a value of a map may be."""
    if not isinstance(schema, dict) or "properties" in schema:
        return False
    if "enum" in schema or "const" in schema:
        return True
    inner = [schema.get("items"), schema.get("additionalProperties"), *schema.get("anyOf", [])]
    if "$ref" in schema:
        inner.append(SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]])
    return any(map(_lists_values, inner))


LISTED = frozenset(
    name
    for definition in SCHEMA["$defs"].values()
    for name, schema in definition.get("properties", {}).items()
    if _lists_values(schema)
)
"""Names of the fields for whose values the schema has lists."""
