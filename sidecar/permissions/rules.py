"""Rules for calls: which calls a rule takes, how it reads, and the rule that a remembered approval keeps. Pure."""

import json
from collections.abc import Iterable
from typing import Any

from sidecar.permissions.globs import matches_exactly, matches_generously, name_matches, quoted
from sidecar.protocol.messages import PermissionRule
from sidecar.protocol.values import JsonObject

OTHER_ARGUMENTS = "*"
"""As an argument's name in a rule: each argument that the rule does not name otherwise."""

LONGEST_KEPT_CHARS = 2000
"""An argument longer than this cannot be remembered: nobody reads it before saying "always" (own choice)."""


def rule_matches(rule: PermissionRule, tool_name: str, arguments: JsonObject) -> bool:
    """Whether a rule takes a call.

    The text of an argument is the string itself, else its compact JSON with sorted keys; that of an absent one
    is empty. Rules that allow take what they say, rules that deny or ask take it in any spelling.
    """
    matches = matches_exactly if rule.decision == "allow" else matches_generously
    return name_matches(rule.tool, tool_name) and all(
        matches(glob, text) for glob, text in _pairs(rule.arguments or {}, arguments)
    )


def described(rule: PermissionRule) -> str:
    """The rule as people read it: `write_file path=src/**`."""
    words = [f"{name}={glob}" for name, glob in (rule.arguments or {}).items() if name != OTHER_ARGUMENTS]
    if rule.arguments and rule.arguments.get(OTHER_ARGUMENTS) == "":
        words.append("and nothing else" if words else "without arguments")
    elif rule.arguments and OTHER_ARGUMENTS in rule.arguments:
        words.append(f"any other={rule.arguments[OTHER_ARGUMENTS]}")
    return " ".join((rule.tool, *words))


def rule_for(tool_name: str, arguments: JsonObject, *, complete: bool = True) -> PermissionRule | None:
    """The rule that allows this call again and nothing else: the tool, and each argument exactly as it was.

    With `complete`, a call that brings further arguments is another call. None where an argument is too long
    to be kept.
    """
    kept = {name: argument_text(value) for name, value in arguments.items() if name != OTHER_ARGUMENTS}
    if len(kept) < len(arguments) or any(len(text) > LONGEST_KEPT_CHARS for text in kept.values()):
        return None
    globs = {name: quoted(text) for name, text in kept.items()}
    if complete:
        globs[OTHER_ARGUMENTS] = ""
    return PermissionRule(tool=quoted(tool_name), decision="allow", arguments=globs or None)


def argument_text(value: Any) -> str:
    """What a rule compares an argument by."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _pairs(globs: dict[str, str], arguments: JsonObject) -> Iterable[tuple[str, str]]:
    for name, glob in globs.items():
        names = [name] if name != OTHER_ARGUMENTS else [other for other in arguments if other not in globs]
        yield from ((glob, argument_text(arguments[n]) if n in arguments else "") for n in names)
