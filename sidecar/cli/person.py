"""Asking the person at the terminal: may this call run, and what should a tool be told.

Where nobody sits at a terminal, calls are denied with a word on how to allow them.
"""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, TextIO

from sidecar.cli import wording
from sidecar.cli.keyboard import CLOSED, ESCAPE, Keyboard, open_keyboard
from sidecar.cli.render import RunView
from sidecar.cli.schema import Field, fields_of, value_of
from sidecar.cli.terminal import clip, safe, safe_line, wrap

JsonObject = dict[str, Any]

KEYS = {"y": "allowOnce", "s": "allowSession", "a": "allowAlways", "n": "deny", "q": "denyAndStop"}
"""The key of each decision; the first letters are what people press everywhere."""

MAX_SHOWN_LINES = 40
"""Lines of arguments shown at first; `v` shows the rest. Own choice: about a screen."""

FOREVER_SECS = 24 * 3600.0
"""The limit of a wait for a person. The sidecar withdraws a question at its own deadline, long before."""


@dataclass
class Person:
    """Answers what the sidecar asks, by keys at the terminal `source`, one question at a time."""

    view: RunView
    allowed: Sequence[str] = ()
    """Permissions and tools, by name or glob, that need no asking: the flag `--allow`."""
    source: TextIO = field(default_factory=lambda: sys.stdin)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    @property
    def is_there(self) -> bool:
        """Somebody can see the question and press a key."""
        return self.view.screen.terminal.notes and self.source.isatty()

    async def approve(self, question: JsonObject) -> JsonObject:
        """Decides on one call."""
        name = safe_line(str(question.get("toolName")))
        needs = [safe_line(str(permission)) for permission in question.get("permissions") or ()]
        if is_allowed(name, needs, self.allowed):
            return {"decision": "allowOnce"}
        if not self.is_there:
            how = " ".join(f"--allow {permission}" for permission in needs or [name])
            self.view.note(f"{name} was denied, because nobody can be asked here; to allow it: {how}", "yellow")
            return {"decision": "deny", "reason": "nobody could be asked"}
        async with self._turn:
            return await self._ask(question, name, needs)

    async def give_input(self, question: JsonObject) -> JsonObject:
        """Asks for what a tool or a server wants to know, field by field."""
        if not self.is_there:
            return {"action": "decline"}
        async with self._turn:
            return await self._ask_for_input(question)

    async def _ask(self, question: JsonObject, name: str, needs: Sequence[str]) -> JsonObject:
        terminal = self.view.screen.terminal
        wanted = f"needs {', '.join(needs)}" if needs else "asks before it runs"
        heading = f"{terminal.style('?', 'yellow', 'bold')} {terminal.style(name, 'bold')} {wanted}"
        lines = [
            f"  {line}" for line in wording.full_arguments(question.get("input"), bar=terminal.symbol("│", "|"))
        ]
        hidden = lines[MAX_SHOWN_LINES:]
        self.view.screen.line("\n".join([heading, *lines[:MAX_SHOWN_LINES]]), kind="question")
        choices = choices_of(question)
        try:
            with open_keyboard(self.source) as keyboard:
                async with asyncio.timeout(FOREVER_SECS):
                    decision = await self._choose(keyboard, choices, hidden)
        finally:
            self.view.prompt(())
        label = next((choices[key] for key, value in KEYS.items() if value == decision), decision)
        self.view.screen.line(terminal.style(f"  {terminal.symbol('→', '->')} {label}", "dim"), kind="question")
        return {"decision": decision}

    async def _choose(self, keyboard: Keyboard, choices: Mapping[str, str], hidden: list[str]) -> str:
        """The decision behind the first key that has one. A terminal that goes away denies."""
        decisions = {**{key: decision for key, decision in KEYS.items() if key in choices}, ESCAPE: "deny"}
        while True:
            more = {"v": f"view {wording.count(len(hidden), 'more line')}"} if hidden else {}
            self.view.prompt(self._choice_lines({**choices, **more}))
            key = await keyboard.key()
            if key == CLOSED:
                return "deny"
            if key == "v" and hidden:
                self.view.screen.line("\n".join(hidden), kind="question")
                hidden = []
            elif key.lower() in decisions:
                return decisions[key.lower()]

    def _choice_lines(self, choices: Mapping[str, str]) -> list[str]:
        terminal = self.view.screen.terminal
        columns = terminal.columns - 1
        words = [clip(f"[{key}] {label}", columns - 2) for key, label in choices.items()]
        return [terminal.style(line, "yellow") for line in wrap(words, columns, indent="  ", gap="  ")]

    async def _ask_for_input(self, question: JsonObject) -> JsonObject:
        terminal = self.view.screen.terminal
        source = safe_line(str(question.get("source", "")))
        first, *more = safe(str(question.get("message", ""))).split("\n")
        heading = f"{terminal.style('?', 'yellow', 'bold')} {first}"
        lines = [heading + (terminal.style(f"  ({source})", "dim") if source else "")]
        lines += [f"  {line}" for line in more]
        lines += [f"  {safe_line(str(question['url']))}"] if question.get("url") else []
        self.view.screen.line("\n".join(lines), kind="question")
        fields, is_object = fields_of(question.get("schema"))
        content: JsonObject = {}
        try:
            with open_keyboard(self.source) as keyboard:
                async with asyncio.timeout(FOREVER_SECS):
                    for wanted in fields:
                        if not await self._fill_in(keyboard, wanted, content):
                            return {"action": "decline"}
        finally:
            self.view.prompt(())
        return {"action": "accept", "content": content if is_object else content.get("")}

    async def _fill_in(self, keyboard: Keyboard, wanted: Field, content: JsonObject) -> bool:
        """Asks for one field until what is typed fits it; False when the person declines."""
        label = f"  {safe_line(wanted.label)}: "
        complaint = ""
        while True:
            self._echo(label, "", complaint)
            typed = await keyboard.line(lambda so_far: self._echo(label, _shown(so_far, wanted), ""))
            if typed is None:
                return False
            if typed == "" and wanted.default is not None:
                content[wanted.name] = wanted.default
                self.view.screen.line(label.rstrip(), kind="question")
                return True
            if typed == "" and not wanted.is_required:
                return True
            try:
                content[wanted.name] = value_of(typed, wanted)
            except ValueError as error:
                complaint = str(error)
                continue
            self.view.screen.line(f"{label}{_shown(typed, wanted)}", kind="question")
            return True

    def _echo(self, label: str, typed: str, complaint: str) -> None:
        terminal = self.view.screen.terminal
        hint = complaint or "Enter sends, Ctrl-D declines"
        lines = [
            self.view.screen.fitted(label + typed),
            terminal.style(self.view.screen.fitted(f"  {hint}"), "dim"),
        ]
        self.view.prompt(lines if not typed or complaint else lines[:1])


def _shown(typed: str, wanted: Field) -> str:
    return "*" * len(typed) if wanted.is_secret else typed


def is_allowed(name: str, needs: Sequence[str], allowed: Sequence[str]) -> bool:
    """Whether the tool itself, or everything that it needs, is among what is allowed."""
    tool_is = any(fnmatchcase(name, pattern) for pattern in allowed)
    needs_are = bool(needs) and all(any(fnmatchcase(need, pattern) for pattern in allowed) for need in needs)
    return tool_is or needs_are


def choices_of(question: JsonObject) -> dict[str, str]:
    """Key and label of each answer on offer, in the sidecar's order; to deny is always possible."""
    offered = [option for option in question.get("options") or () if isinstance(option, dict)]
    key_of = {decision: key for key, decision in KEYS.items()}
    choices = {
        key_of[option["decision"]]: safe_line(str(option.get("label") or option["decision"]))
        for option in offered
        if option.get("decision") in key_of
    }
    return {**choices, "n": choices.get("n", "Deny")}
