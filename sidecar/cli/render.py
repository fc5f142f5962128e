"""A run's events, shown: text as it comes, a line for each call with its state and time, and what goes on now.

Takes events as they are on the wire. An event of a type it does not know is passed over, because a newer
sidecar may send more.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from sidecar.cli import wording
from sidecar.cli.calls import Call, completed_lines, progress_words, running_line, wrapped
from sidecar.cli.screen import Screen
from sidecar.cli.terminal import SPINNER, safe, safe_line

JsonObject = dict[str, Any]

QUIET_SECS = 0.4
"""How long nothing happens before the live block says what is waited for. Own choice: shorter flickers."""

PLAIN_PROGRESS_SECS = 5.0
"""How far apart progress lines of one call are where there is no live block. Own choice."""

SPINNER_SECS = 0.1


class View(Protocol):
    """Something that shows a run: rendered for people, or raw for programs."""

    def begin(self) -> None:
        """A run starts."""

    def show(self, notification: JsonObject) -> None:
        """One `agent/event`: `{sessionId, runId, seq, event}`."""

    def tick(self) -> None:
        """Time has passed."""

    def end(self) -> None:
        """The run is over."""


@dataclass
class _Totals:
    turns: int = 0
    calls: int = 0
    tokens: int = 0
    started: float = 0.0


@dataclass
class RunView:
    """Renders one run after another on a screen. `clock` gives seconds."""

    screen: Screen
    show_totals: bool = True
    clock: Callable[[], float] = time.monotonic
    _calls: dict[str, Call] = field(default_factory=dict, init=False)
    """Those that run, by call id."""
    _asked_about: dict[str, str] = field(default_factory=dict, init=False)
    """Call id by question."""
    _prompt: Sequence[str] = field(default=(), init=False)
    _waiting_for: str = field(default="", init=False)
    _model: str = field(default="", init=False)
    _heard: float = field(default=0.0, init=False)
    _totals: _Totals = field(default_factory=_Totals, init=False)

    def begin(self) -> None:
        """A run starts: nothing of the one before is left."""
        self._calls.clear()
        self._asked_about.clear()
        self._waiting_for = "starting"
        self._heard = self.clock()
        self._totals = _Totals(started=self._heard)

    def end(self) -> None:
        """The run is over, however it ended; the cursor stands at the start of a line."""
        self._waiting_for = ""
        self._calls.clear()
        self._prompt = ()
        self.screen.end()

    def prompt(self, lines: Sequence[str]) -> None:
        """Keeps these lines at the bottom until they are replaced; none takes them away."""
        self._prompt = tuple(lines)
        self._refresh()

    def tick(self) -> None:
        """Lets the live block show that time passes. Call it ten times a second where there is one."""
        self.screen.catch_up()
        self._refresh()

    def show(self, notification: JsonObject) -> None:
        """One event."""
        self._heard = self.clock()
        event: JsonObject = notification["event"]
        match event:
            case {"type": "assistantTextDelta", "text": str(text)}:
                self._waiting_for = ""
                self.screen.answer(safe(text))
            case {"type": "assistantReasoningDelta", "text": str(text)}:
                self._waiting_for = ""
                self.screen.aside(safe(text))
            case {"type": "runStarted"}:
                self._model = self._waiting_for = safe_line(str(event.get("model", "the model")))
            case {"type": "turnComplete"}:
                self._complete_turn(event)
            case {"type": "runCompleted"}:
                self._complete_run(is_whole=event.get("stopReason") == "stop")
            case {"type": str(kind)} if kind.startswith("tool"):
                self._show_call(event)
            case _:
                self._show_note(event)

    # Turns -----------------------------------------------------------------------------------------------

    def _complete_turn(self, event: JsonObject) -> None:
        self._totals.turns += 1
        usage = event.get("usage") or {}
        self._totals.tokens += usage.get("totalTokens") or 0
        self.screen.end_answer()

    def _complete_run(self, *, is_whole: bool) -> None:
        self._waiting_for = ""
        self._calls.clear()
        self.screen.live(())
        if is_whole and self.show_totals and self.screen.terminal.notes:
            self.screen.line(self.screen.terminal.style(self._totals_line(), "dim"))

    def _totals_line(self) -> str:
        totals = self._totals
        parts = [wording.duration(self.clock() - totals.started), wording.count(totals.turns, "turn")]
        parts += [wording.count(totals.calls, "call")] if totals.calls else []
        parts += [wording.count(totals.tokens, "token")] if totals.tokens else []
        return self.screen.fitted(self.screen.terminal.symbol(" · ", ", ").join(parts))

    # Calls -----------------------------------------------------------------------------------------------

    def _show_call(self, event: JsonObject) -> None:
        match event:
            case {"type": "toolExecutionStarted", "callId": str(call_id), "toolName": str(name)}:
                self._totals.calls += 1
                self._waiting_for = ""
                self.screen.end_answer()
                self._calls[call_id] = Call(name, event.get("input"), self._heard)
            case {"type": "toolExecutionProgress", "callId": str(call_id)} if call_id in self._calls:
                self._note_progress(self._calls[call_id], event)
            case {"type": "toolExecutionCompleted", "callId": str(call_id)}:
                unannounced = Call(str(event.get("toolName")), None, self._heard)
                call = self._calls.pop(call_id, unannounced)
                self.screen.line("\n".join(completed_lines(call, event, self.screen.terminal)))
                self._waiting_for = "" if self._calls else self._model
        self._refresh()

    def _note_progress(self, call: Call, event: JsonObject) -> None:
        call.progress = progress_words(event, self.screen.terminal)
        if not self.screen.terminal.notes and self._heard - call.told >= PLAIN_PROGRESS_SECS:
            call.told = self._heard
            self.screen.line(f"... {safe_line(call.name)}  {call.progress}")

    # What is neither text nor a call ---------------------------------------------------------------------

    def _show_note(self, event: JsonObject) -> None:
        match event:
            case {"type": "warning", "message": str(message)}:
                self.note(message, "yellow")
            case {"type": "retrying"}:
                delay = wording.duration((event.get("delayMs") or 0) / 1000)
                self.note(f"attempt {event.get('attempt')} in {delay}: {event.get('reason')}", "yellow")
            case {"type": "compacted"}:
                sizes = f"{event.get('beforeTokens')} to {event.get('afterTokens')}"
                self.note(f"the conversation was shortened from {sizes} tokens", "dim")
            case {"type": "approvalRequested", "requestId": str(request_id), "callId": str(call_id)}:
                self._asked_about[request_id] = call_id
                self._mark_asked(call_id, True)
            case {"type": "approvalResolved", "requestId": str(request_id)}:
                self._mark_asked(self._asked_about.pop(request_id, ""), False)
                if event.get("by") == "deadline":
                    self.note("nobody answered in time: denied", "yellow")

    def _mark_asked(self, call_id: str, is_asked_about: bool) -> None:
        if call := self._calls.get(call_id):
            call.is_asked_about = is_asked_about
            call.started = self._heard
        self._refresh()

    def note(self, message: str, style: str) -> None:
        """A remark beside the answer, on lines of its own."""
        terminal = self.screen.terminal
        lines = wrapped(f"! {safe_line(message)}", terminal)
        self.screen.line("\n".join(terminal.style(line, style) for line in lines))

    def _refresh(self) -> None:
        """Draws what goes on now: the running calls, what else is waited for, and a question."""
        terminal = self.screen.terminal = self.screen.terminal.resized()
        if not terminal.notes:
            return
        now = self.clock()
        spinner = terminal.symbol(SPINNER[int(now / SPINNER_SECS) % len(SPINNER)], "*")
        lines = [
            running_line(call, now, spinner, terminal) for call in self._calls.values() if not call.is_asked_about
        ]
        if self._waiting_for and not self._calls and now - self._heard >= QUIET_SECS:
            waiting = Call(self._waiting_for, None, self._heard)
            lines.append(running_line(waiting, now, spinner, terminal))
        self.screen.live([*lines, *self._prompt])


@dataclass
class JsonView:
    """Raw events, one JSON object a line."""

    screen: Screen

    def begin(self) -> None:
        """Nothing to prepare."""

    def show(self, notification: JsonObject) -> None:
        """One event, as it came."""
        self.screen.answer(json.dumps(notification) + "\n")

    def tick(self) -> None:
        """Nothing moves."""

    def end(self) -> None:
        """Every line has ended already."""
