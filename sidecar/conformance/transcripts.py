"""Transcripts as frozen values, read strictly: a word that is not known is an error, so that none is passed over.

`transcripts/README.md` says what each word means.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from attrs import frozen

from sidecar.conformance.host_steps import WORDS as HOST_WORDS
from sidecar.conformance.host_steps import HostStep
from sidecar.conformance.reading import Reader, TranscriptError
from sidecar.conformance.rules import Rule
from sidecar.protocol.values import JsonObject


@frozen(kw_only=True)
class Send:
    """Sends a frame. Values may hold `$` operators; see `matching.fill`."""

    frame: Any


@frozen(kw_only=True)
class SendBytes:
    """Sends text as it stands, with `{length}` replaced by the bytes of `body`, which follows it; `times` over."""

    text: Any
    body: Any = None
    encoding: str = "utf-8"
    times: int = 1


@frozen(kw_only=True)
class Expect:
    """Waits for a frame with the address of `frame`, which has to match it.

    `where` narrows down which frame is meant. `reply` answers it, being a request. Time limits are in
    milliseconds: `within_ms` is how long to wait, None for the kit's own bound; `after_ms` is the least time
    that must have passed since the step before.
    """

    frame: JsonObject
    where: Any = None
    reply: JsonObject | None = None
    within_ms: int | None = None
    after_ms: int | None = None
    rule: str | None = None


@frozen(kw_only=True)
class Count:
    """How many frames of this conversation have matched so far; `times` is a pattern of the number."""

    frame: JsonObject
    times: Any
    rule: str | None = None


@frozen(kw_only=True)
class Order:
    """Frames of this conversation came in this order, others between them or not."""

    frames: tuple[JsonObject, ...]
    rule: str | None = None


@frozen(kw_only=True)
class Joined:
    """The texts at `path` (`params.event.text`) of all frames that match so far, joined, match a pattern."""

    frame: JsonObject
    path: str
    matches: Any
    rule: str | None = None


@frozen(kw_only=True)
class Check:
    """A value made of what was captured matches a pattern."""

    value: Any
    matches: Any
    rule: str | None = None


@frozen(kw_only=True)
class Stop:
    """Ends what is judged from outside: `closeInput`, `terminate` (SIGTERM), `kill` (by force), `hostDies`.

    With the last the process ends whose number is known as `hostPid`; the pipes stay open.
    """

    how: str


@frozen(kw_only=True)
class Exit:
    """The process that is judged ends within a time, in milliseconds, with a status."""

    status: Any
    within_ms: int
    rule: str | None = None


@frozen(kw_only=True)
class Gone:
    """The processes with these numbers have ended within a time, in milliseconds."""

    pids: Any
    within_ms: int
    rule: str | None = None


@frozen(kw_only=True)
class Wait:
    """Does nothing for so long."""

    for_ms: int


@frozen(kw_only=True)
class Reading:
    """Stops reading what the other side writes, or begins again."""

    on: bool


Step = Send | SendBytes | Expect | Count | Order | Joined | Check | Stop | Exit | Gone | Wait | Reading | HostStep


@frozen(kw_only=True)
class Conversation:
    """Steps that are played in their order.

    `start` says how the other side is started (its own meaning in each half of the kit); those with the same
    may share a process unless they are `alone`. `needs` names what the other side has to be able to do, else
    the conversation is skipped.
    """

    name: str
    about: str
    steps: tuple[Step, ...]
    start: JsonObject
    alone: bool = False
    needs: tuple[str, ...] = ()

    @property
    def rules(self) -> frozenset[str]:
        """The rules that its steps prove."""
        return frozenset(rule for step in self.steps if (rule := rule_of(step)))


@frozen(kw_only=True)
class Kit:
    """One half of the kit: its rules in the order of their numbers, and the conversations that prove them."""

    rules: tuple[Rule, ...]
    conversations: tuple[Conversation, ...]

    def only(self, rule_ids: frozenset[str]) -> "Kit":
        """These rules, and the conversations that prove any of them; watches are in every conversation."""
        rules = tuple(rule for rule in self.rules if rule.id in rule_ids)
        if any(rule.watch for rule in rules):
            return Kit(rules=rules, conversations=self.conversations)
        return Kit(rules=rules, conversations=tuple(each for each in self.conversations if each.rules & rule_ids))


def rule_of(step: Step) -> str | None:
    """The rule that a step proves."""
    return getattr(step, "rule", None)


START = "start.json"
"""What all files of a half have under `start`, unless they say otherwise."""


def read_kit(half: str) -> Kit:
    """The transcripts of `server` or `host` that this package brings. Raises TranscriptError."""
    folder = resources.files("sidecar.conformance").joinpath("transcripts", half)
    files = {file.name: file for file in folder.iterdir() if file.name.endswith(".json")}
    start = json.loads(files.pop(START).read_text("utf-8"))["start"] if START in files else {}
    parts = [read_file(files[name], start) for name in sorted(files)]
    rules = sorted((rule for part in parts for rule in part.rules), key=lambda rule: rule.id)
    kit = Kit(rules=tuple(rules), conversations=tuple(each for part in parts for each in part.conversations))
    _check_names(kit)
    return kit


def read_file(file: Traversable, start: JsonObject) -> Kit:
    """One file: the rules of a topic and the conversations that prove them. `start` is under the file's own."""
    try:
        content = json.loads(file.read_text("utf-8"))
    except ValueError as error:
        raise TranscriptError(f"{file.name}: not JSON: {error}") from None
    known = Reader(content, file.name)
    start = merged(start, known.get("start", {}))
    known.get("topic", "")
    rules = tuple(_rule(Reader(each, f"{file.name}: rules")) for each in known.get("rules", []))
    conversations = tuple(
        _conversation(Reader(each, f"{file.name}: {each.get('name')}"), start)
        for each in known.get("conversations", [])
    )
    known.done()
    return Kit(rules=rules, conversations=conversations)


def _rule(known: Reader) -> Rule:
    rule = Rule(
        id=known.need("id"), must=known.need("must"), section=known.need("section"), watch=known.get("watch")
    )
    known.done()
    return rule


def _conversation(known: Reader, start: JsonObject) -> Conversation:
    name = known.need("name")
    conversation = Conversation(
        name=name,
        about=known.get("about", ""),
        start=merged(start, known.get("start", {})),
        alone=known.get("alone", False),
        needs=tuple(known.get("needs", [])),
        steps=tuple(
            _step(Reader(each, f"{known.place}, step {number}"))
            for number, each in enumerate(known.need("steps"), 1)
        ),
    )
    known.done()
    return conversation


def merged(under: JsonObject, over: JsonObject) -> JsonObject:
    """Objects are merged by name, at any depth; everything else is replaced."""
    both = dict(under)
    for name, value in over.items():
        known = both.get(name)
        both[name] = merged(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return both


def _step(known: Reader) -> Step:
    for word, read in _STEPS.items():
        if known.has(word):
            step = read(known)
            known.get("note")  # For people who read the file.
            known.done()
            return step
    raise TranscriptError(f"{known.place}: no step, which is one of {', '.join(_STEPS)}")


def _expect(known: Reader) -> Step:
    return Expect(
        frame=known.need("expect"),
        where=known.get("where"),
        reply=known.get("reply"),
        within_ms=known.get("withinMs"),
        after_ms=known.get("afterMs"),
        rule=known.get("rule"),
    )


def _event(known: Reader) -> Step:
    """`event` is an `expect` of an `agent/event`, of the run whose id was captured or is named by `run`."""
    params: JsonObject = {"event": known.need("event")}
    if known.has("run"):
        params["runId"] = known.get("run")
    if known.has("seq"):
        params["seq"] = known.get("seq")
    return Expect(
        frame={"method": "agent/event", "params": params},
        where=known.get("where"),
        within_ms=known.get("withinMs"),
        rule=known.get("rule"),
    )


_STEPS: Mapping[str, Callable[[Reader], Step]] = {
    "send": lambda known: Send(frame=known.need("send")),
    "sendBytes": lambda known: SendBytes(
        text=known.need("sendBytes"),
        body=known.get("body"),
        encoding=known.get("encoding", "utf-8"),
        times=known.get("times", 1),
    ),
    "expect": _expect,
    "event": _event,
    "count": lambda known: Count(frame=known.need("count"), times=known.need("times"), rule=known.get("rule")),
    "order": lambda known: Order(frames=tuple(known.need("order")), rule=known.get("rule")),
    "joined": lambda known: Joined(
        frame=known.need("joined"), path=known.need("path"), matches=known.need("is"), rule=known.get("rule")
    ),
    "check": lambda known: Check(value=known.need("check"), matches=known.need("is"), rule=known.get("rule")),
    "stop": lambda known: Stop(how=known.need("stop")),
    "exit": lambda known: Exit(
        status=known.need("exit"), within_ms=known.need("withinMs"), rule=known.get("rule")
    ),
    "gone": lambda known: Gone(pids=known.need("gone"), within_ms=known.need("withinMs"), rule=known.get("rule")),
    "waitMs": lambda known: Wait(for_ms=known.need("waitMs")),
    "reading": lambda known: Reading(on=known.need("reading")),
    **HOST_WORDS,
}
"""The words that make a step what it is; each reads its own fields."""


def _check_names(kit: Kit) -> None:
    for complaint in _complaints(kit):
        raise TranscriptError(complaint)


def _complaints(kit: Kit) -> Iterator[str]:
    """A name that is there twice, a rule that a step names and nobody has, a rule that nothing proves."""
    ids = [rule.id for rule in kit.rules]
    names = [conversation.name for conversation in kit.conversations]
    yield from (
        f"{name} is there twice"
        for name in sorted({each for each in ids + names if (ids + names).count(each) > 1})
    )
    proven = {rule for conversation in kit.conversations for rule in conversation.rules}
    by_steps = {rule.id for rule in kit.rules if rule.watch is None}
    yield from (f"there is no rule {rule}, which a step names" for rule in sorted(proven - by_steps))
    yield from (f"nothing proves the rule {rule}" for rule in sorted(by_steps - proven))
