"""Checks of everything that goes over the wire in any conversation: envelopes and answers.

A watch sees each frame once, in its order, and complains of what breaks its rule. `proofs` counts what it had to
judge: a watch that never saw any proves nothing. What the sidecar asks, and runs, have watches of their own.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import ClassVar

from attrs import define, field

from sidecar.conformance import shapes
from sidecar.conformance.matching import shown
from sidecar.protocol.values import JsonObject

Complaints = Iterator[str]


class Watch:
    """One check. `name` is how a rule names it."""

    name: ClassVar[str]

    def __init__(self) -> None:
        self.proofs = 0

    def sent(self, frame: JsonObject) -> Complaints:
        """The kit sends a frame."""
        yield from ()

    def received(self, frame: JsonObject) -> Complaints:
        """What is judged sends a frame."""
        yield from ()

    def odd(self, fault: str) -> Complaints:
        """What is judged sends something else."""
        yield from ()

    def settled(self) -> Complaints:
        """A conversation is over, and what was open had its time."""
        yield from ()

    def ended(self, why: str) -> Complaints:
        """What is judged went away without having been told to."""
        yield from ()


@define
class Watches:
    """The watches of one process, each with the rule that it stands for."""

    by_rule: Mapping[str, Watch]
    open_requests: set[str] = field(factory=set)
    """Ids of our requests that were not answered, as JSON."""

    def sent(self, frame: JsonObject) -> list[tuple[str, str]]:
        """Rule and complaint of everything that is wrong, as in the methods below."""
        if "method" in frame and "id" in frame:
            self.open_requests.add(shown(frame["id"]))
        return self._heard(lambda watch: watch.sent(frame))

    def received(self, frame: JsonObject) -> list[tuple[str, str]]:
        """A frame came."""
        if "method" not in frame:
            self.open_requests.discard(shown(frame.get("id")))
        return self._heard(lambda watch: watch.received(frame))

    def odd(self, fault: str) -> list[tuple[str, str]]:
        """Something else came."""
        return self._heard(lambda watch: watch.odd(fault))

    def settled(self) -> list[tuple[str, str]]:
        """A conversation is over."""
        found = self._heard(lambda watch: watch.settled())
        self.open_requests.clear()
        return found

    def ended(self, why: str) -> list[tuple[str, str]]:
        """The process is gone."""
        return self._heard(lambda watch: watch.ended(why))

    def proven(self) -> Iterable[str]:
        """Rules whose watch had something to judge."""
        return [rule for rule, watch in self.by_rule.items() if watch.proofs]

    def _heard(self, look: Callable[[Watch], Complaints]) -> list[tuple[str, str]]:
        return [(rule, complaint) for rule, watch in self.by_rule.items() for complaint in look(watch)]


class OnlyFrames(Watch):
    """stdout holds frames and nothing else."""

    name = "onlyFrames"

    def received(self, frame: JsonObject) -> Complaints:
        self.proofs += 1
        yield from ()

    def odd(self, fault: str) -> Complaints:
        yield fault


class JsonRpc(Watch):
    """Each message is one of JSON-RPC 2.0."""

    name = "jsonRpc"

    def received(self, frame: JsonObject) -> Complaints:
        self.proofs += 1
        if frame.get("jsonrpc") != "2.0":
            yield f'jsonrpc must be "2.0" in {shown(frame)}'
        if "method" in frame:
            if not isinstance(frame["method"], str) or not isinstance(frame.get("params", {}), dict | list):
                yield f"no request or notification: {shown(frame)}"
        elif "id" not in frame or ("result" in frame) == ("error" in frame):
            yield f"an answer has an id and either a result or an error: {shown(frame)}"


class Schema(Watch):
    """Params, results and events of the protocol's methods have the fields and types that it gives them."""

    name = "schema"

    def __init__(self) -> None:
        super().__init__()
        self._asked: dict[str, str] = {}

    def sent(self, frame: JsonObject) -> Complaints:
        if "id" in frame and isinstance(frame.get("method"), str):
            self._asked[shown(frame["id"])] = frame["method"]
        yield from ()

    def received(self, frame: JsonObject) -> Complaints:
        self.proofs += 1
        method = frame.get("method")
        if isinstance(method, str):
            fault = shapes.params_fault(method, frame.get("params"))
        else:
            method = self._asked.pop(shown(frame.get("id")), "")
            fault = shapes.result_fault(method, frame["result"]) if "result" in frame else None
        if fault is not None:
            yield f"{method}: {fault}"


class EveryAnswer(Watch):
    """A request is answered."""

    name = "everyAnswer"

    def __init__(self) -> None:
        super().__init__()
        self._open: dict[str, str] = {}

    def sent(self, frame: JsonObject) -> Complaints:
        if "id" in frame and isinstance(frame.get("method"), str):
            self._open[shown(frame["id"])] = frame["method"]
        yield from ()

    def received(self, frame: JsonObject) -> Complaints:
        if "method" not in frame and self._open.pop(shown(frame.get("id")), ""):
            self.proofs += 1
        yield from ()

    def settled(self) -> Complaints:
        for request, method in self._open.items():
            yield f"{method} with the id {request} was never answered"
        self._open.clear()


class NoSecondAnswer(Watch):
    """A request is not answered twice."""

    name = "noSecondAnswer"

    def __init__(self) -> None:
        super().__init__()
        self._asked: Counter[str] = Counter()
        self._answered: Counter[str] = Counter()

    def sent(self, frame: JsonObject) -> Complaints:
        if "id" in frame and "method" in frame:
            self._asked[shown(frame["id"])] += 1
        yield from ()

    def received(self, frame: JsonObject) -> Complaints:
        if "method" in frame or frame.get("id") is None:
            return
        self.proofs += 1
        key = shown(frame["id"])
        self._answered[key] += 1
        if self._answered[key] > max(1, self._asked[key]):  # What was sent as bare bytes was not seen here.
            yield f"one more answer to {key}: {shown(frame)}"


class ErrorKinds(Watch):
    """An error has a code, a message, and in `data.kind` the word for the code."""

    name = "errorKinds"

    def received(self, frame: JsonObject) -> Complaints:
        error = frame.get("error")
        if "method" in frame or not isinstance(error, dict):
            return
        self.proofs += 1
        code, data = error.get("code"), error.get("data")
        if not isinstance(code, int) or not isinstance(error.get("message"), str):
            yield f"an error has an integer code and a message: {shown(error)}"
        kind = data.get("kind") if isinstance(data, dict) else None
        if not isinstance(kind, str):
            yield f"data.kind is missing: {shown(error)}"
        elif shapes.error_codes().get(kind, code) != code:
            yield f"{kind} has the code {shapes.error_codes()[kind]}, not {shown(code)}"


_TRACES = re.compile(
    r"Traceback \(most recent call last\)|^\s*File \"[^\"]+\", line \d+|^\s+at \S.*:\d+:\d+|^goroutine \d+ \[|"
    r"^\s+at [\w.$]+\([\w]+\.java:\d+\)|stack backtrace:",
    re.MULTILINE,
)
"""How the traces of common languages look."""


class NoTrace(Watch):
    """No trace of a stack goes over the wire."""

    name = "noTrace"

    def received(self, frame: JsonObject) -> Complaints:
        error = frame.get("error")
        if "method" in frame or not isinstance(error, dict):
            return
        self.proofs += 1
        for text in _texts(error):
            if _TRACES.search(text):
                yield f"a trace of the stack: {shown(text)}"


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


class Stays(Watch):
    """The sidecar does not go before it is told to."""

    name = "stays"

    def received(self, frame: JsonObject) -> Complaints:
        self.proofs += 1
        yield from ()

    def ended(self, why: str) -> Complaints:
        yield why


WIRE_WATCHES: tuple[type[Watch], ...] = (
    OnlyFrames,
    JsonRpc,
    Schema,
    EveryAnswer,
    NoSecondAnswer,
    ErrorKinds,
    NoTrace,
    Stays,
)
