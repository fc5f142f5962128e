"""The words that only transcripts for hosts have: the runner plays the sidecar, so it also tells events and dies.

`transcripts/README.md` says what each means. What both halves have is in `transcripts.py`.
"""

from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

from sidecar.conformance.reading import Reader, TranscriptError
from sidecar.protocol.values import JsonObject


@frozen(kw_only=True)
class HostStep:
    """A step of a transcript for hosts."""


@frozen(kw_only=True)
class Submit(HostStep):
    """Waits for an `agent/submit` whose params match, which begins the run that later steps call `run`.

    One with `wait: false` is answered at once, unless the transcript says that this comes `late`.
    """

    run: str
    params: Any
    late: bool = False
    within_ms: int | None = None
    rule: str | None = None


@frozen(kw_only=True)
class Tell(HostStep):
    """Sends an event of a run, with the next number; `beside` are more fields of the notification's params.

    One that is `missed` is not sent: `session/events` alone will tell of it.
    """

    event: Any
    run: str
    beside: JsonObject
    missed: bool = False


@frozen(kw_only=True)
class Finish(HostStep):
    """Ends a run: `runCompleted` with the fields of `event`, then the answer, unless it was given already.

    The answer is `answer`, `{"result": …}` or `{"error": …}`; without one it is what the event tells.
    """

    run: str
    event: JsonObject
    answer: JsonObject | None = None
    missed: bool = False


@frozen(kw_only=True)
class Answered(HostStep):
    """The host's answer to a request with this label matches; it may be looked at again and again."""

    label: Any
    matches: Any
    within_ms: int | None = None
    rule: str | None = None


@frozen(kw_only=True)
class Cancelled(HostStep):
    """The host cancels a run: by the id of its request, of the run, or of its session."""

    run: str
    within_ms: int | None = None
    rule: str | None = None


@frozen(kw_only=True)
class Printed(HostStep):
    """What the host printed of its run with this number matches."""

    run: int
    matches: Any
    within_ms: int | None = None
    rule: str | None = None


@frozen(kw_only=True)
class Silence(HostStep):
    """For so long nothing is sent.

    Nothing but what `but` names (methods) comes after the frame that was read last.
    """

    for_ms: int
    but: tuple[str, ...] = ()
    rule: str | None = None


@frozen(kw_only=True)
class Wire(HostStep):
    """How frames go out from here on.

    In pieces of `piece_bytes` with `pause_ms` between them; with `header` in place of the usual one (`{bytes}`
    stands for the size); with `together`, they are kept back until another `wire` and then go out at once.
    """

    piece_bytes: int | None = None
    pause_ms: int = 0
    header: str | None = None
    together: bool = False


@frozen(kw_only=True)
class Stderr(HostStep):
    """Writes text to stderr, `times` over."""

    text: str
    times: int = 1


@frozen(kw_only=True)
class Die(HostStep):
    """The process of the sidecar ends. `unfinished` is a frame of which the header promises more than comes."""

    status: int
    unfinished: Any = None


@frozen(kw_only=True)
class Kill(HostStep):
    """The process of the host is ended by force, and nothing else with it."""


@frozen(kw_only=True)
class Lost(HostStep):
    """The host closes the sidecar's stdin (`input`), or ends its process by force (`process`)."""

    what: str
    within_ms: int | None = None
    rule: str | None = None


def _tell(known: Reader) -> HostStep:
    return Tell(
        event=known.need("tell"),
        run=known.get("run", "run"),
        beside=known.get("beside", {}),
        missed=known.get("missed", False),
    )


def _submit(known: Reader) -> HostStep:
    return Submit(
        params=known.need("submit"),
        run=known.get("run", "run"),
        late=known.get("late", False),
        within_ms=known.get("withinMs"),
        rule=known.get("rule"),
    )


def _finish(known: Reader) -> HostStep:
    return Finish(
        event=known.need("finish"),
        run=known.get("run", "run"),
        answer=known.get("answer"),
        missed=known.get("missed", False),
    )


def _answered(known: Reader) -> HostStep:
    return Answered(
        label=known.need("answered"),
        matches=known.get("is", {"$any": True}),
        within_ms=known.get("withinMs"),
        rule=known.get("rule"),
    )


def _printed(known: Reader) -> HostStep:
    return Printed(
        matches=known.need("printed"),
        run=known.get("number", 0),
        within_ms=known.get("withinMs"),
        rule=known.get("rule"),
    )


def _wire(known: Reader) -> HostStep:
    known.need("wire")
    return Wire(
        piece_bytes=known.get("pieceBytes"),
        pause_ms=known.get("pauseMs", 0),
        header=known.get("header"),
        together=known.get("together", False),
    )


def _kill(known: Reader) -> HostStep:
    if (what := known.need("kill")) != "host":
        raise TranscriptError(f"{known.place}: kill {what}, which can be host alone")
    return Kill()


def _silence(known: Reader) -> HostStep:
    but = tuple(known.get("but", []))
    return Silence(for_ms=known.need("silenceMs"), but=but, rule=known.get("rule"))


WORDS: Mapping[str, Callable[[Reader], HostStep]] = {
    "submit": _submit,
    "tell": _tell,
    "finish": _finish,
    "answered": _answered,
    "cancelled": lambda known: Cancelled(
        run=known.need("cancelled"), within_ms=known.get("withinMs"), rule=known.get("rule")
    ),
    "printed": _printed,
    "silenceMs": _silence,
    "wire": _wire,
    "stderr": lambda known: Stderr(text=known.need("stderr"), times=known.get("times", 1)),
    "die": lambda known: Die(status=known.need("die"), unfinished=known.get("unfinished")),
    "kill": _kill,
    "lost": lambda known: Lost(what=known.need("lost"), within_ms=known.get("withinMs"), rule=known.get("rule")),
}
"""The words that make a step what it is; each reads its own fields."""
