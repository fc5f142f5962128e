"""JSON as people keep it in their editors: with comments, trailing commas, a byte order mark, keys written twice.

Own scanner, in two regular expressions before the standard library's parser. The libraries there are read all
of JSON5, which these files are not, at some 100 KB a second; Claude Code's file alone can hold megabytes.
"""

import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_STRING_OR_COMMA = re.compile(r'"(?:[^"\\\n]|\\.)*"|,(?=\s*[}\]])')


class JsoncError(ValueError):
    """The text is no JSON; `line` counts from 1, 0 where none can be named."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.line = line


def read_jsonc(text: str) -> tuple[Any, tuple[str, ...]]:
    """The value, and the keys that an object holds twice, of which the last counts. Raises JsoncError."""
    twice: list[str] = []

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        collected = dict(pairs)
        if len(collected) < len(pairs):
            counted = Counter(key for key, _ in pairs)
            twice.extend(key for key, number in counted.items() if number > 1)
        return collected

    try:
        return _parsed(text.removeprefix("\ufeff"), collect), tuple(dict.fromkeys(twice))
    except json.JSONDecodeError as error:
        raise JsoncError(error.msg, error.lineno) from None
    except RecursionError:
        raise JsoncError("is nested too deep", 0) from None
    except ValueError as error:  # A number with more digits than Python converts.
        raise JsoncError(str(error).partition(";")[0], 0) from None


def _parsed(text: str, collect: Callable[[list[tuple[str, Any]]], dict[str, Any]]) -> Any:
    try:
        return json.loads(text, object_pairs_hook=collect)
    except json.JSONDecodeError:  # Most files have no comments, and the scanner takes its time.
        return json.loads(_as_json(text), object_pairs_hook=collect)


def _as_json(text: str) -> str:
    """The text with spaces in the place of comments and trailing commas, so that lines stay where they are."""
    return _STRING_OR_COMMA.sub(_blank, _STRING_OR_COMMENT.sub(_blank, text))


def _blank(found: re.Match[str]) -> str:
    matched = found[0]
    return matched if matched[0] == '"' else re.sub(r"[^\n]", " ", matched)
