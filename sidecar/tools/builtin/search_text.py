"""`search_text`: the lines that a regular expression or a text is found in.

ripgrep does the work where it is installed, else Python does; both skip the same files and count the same lines.
"""

from collections.abc import Sequence
from typing import ClassVar

from sidecar.permissions.model import Permission
from sidecar.protocol.values import JsonObject, TextBlock, ToolResult
from sidecar.tools.base import ToolContext, ToolOutput
from sidecar.tools.builtin.file_tool import INCLUDE_IGNORED, PATH, PlaceTool, limit, parameters, told
from sidecar.tools.builtin.found import Match
from sidecar.tools.threads import in_thread

DEFAULT_LIMIT = 100
MAX_LIMIT = 2000
"""Own choices: a model is better served by a narrower search than by more lines."""

MAX_LINE_CHARACTERS = 500
"""How much of a long line is shown around what was found in it. Own choice: minified files have one line."""


class SearchText(PlaceTool):
    """Result: `path`, `matches` of `path`, `line`, `text` (and `before`, `after`), `total`, `truncated`."""

    name = "search_text"
    description = (
        "Searches the text files of the workspace for a regular expression, line by line. Gives paths, line "
        "numbers and lines. Passes over binary files and what .gitignore names."
    )
    parameters = parameters(
        "pattern",
        pattern={"type": "string", "minLength": 1, "description": "A regular expression, without look-around"},
        path={**PATH, "description": "The folder or file to search. Default: the first workspace folder"},
        glob={"type": "string", "description": "Only files that this glob takes, such as *.py or src/**"},
        literal={"type": "boolean", "description": "The pattern is plain text. Default false"},
        ignoreCase={"type": "boolean", "description": "Default false"},
        contextLines={"type": "integer", "minimum": 0, "maximum": 20, "description": "Lines around. Default 0"},
        includeIgnored=INCLUDE_IGNORED,
        limit=limit(DEFAULT_LIMIT, MAX_LIMIT, "matches"),
    )
    required_permissions = (Permission.READ,)
    idempotent = True
    default_path: ClassVar[str] = "."

    async def execute(self, args: JsonObject, ctx: ToolContext) -> ToolOutput:
        from sidecar.tools.builtin.searching import SearchError, search_tree  # noqa: PLC0415

        place = await in_thread(self.permitted_place, args, ctx)
        most = int(args.get("limit", DEFAULT_LIMIT))
        try:
            found = await search_tree(place, args, lambda: ctx.cancellation.cancelled)
        except SearchError as error:
            return ToolResult.error(str(error))
        except OSError as error:
            return told(error, place.shown)
        matches = [
            _described(match, place.shown_below(match.path) if match.path else place.shown)
            for match in found.matches[:most]
        ]
        total = len(found.matches)
        is_cut = total > most or not found.is_complete
        data = {"path": place.shown, "matches": matches, "total": total, "truncated": is_cut}
        return ToolResult.success(data, content=(TextBlock(text=_told(matches, total)),))


def _described(match: Match, path: str) -> JsonObject:
    around = {"before": match.before, "after": match.after}
    return {
        "path": path,
        "line": match.line,
        "text": _window(match.text, match.start),
        **{name: [_window(line, 0) for line in lines] for name, lines in around.items() if lines},
    }


def _window(text: str, start: int) -> str:
    """A line, or the part of a long one around what was found in it."""
    if len(text) <= MAX_LINE_CHARACTERS:
        return text
    first = max(0, min(start - MAX_LINE_CHARACTERS // 4, len(text) - MAX_LINE_CHARACTERS))
    last = first + MAX_LINE_CHARACTERS
    return f"{'…' if first else ''}{text[first:last]}{'…' if last < len(text) else ''}"


def _told(matches: list[JsonObject], total: int) -> str:
    if not matches:
        return "nothing found"
    blocks = [_lines(**match) for match in matches]
    has_context = any(len(block) > 1 for block in blocks)
    text = ("\n--\n" if has_context else "\n").join("\n".join(block) for block in blocks)
    more = total - len(matches)
    return f"{text}\n[{more} more; narrow the search]" if more else text


def _lines(path: str, line: int, text: str, before: Sequence[str] = (), after: Sequence[str] = ()) -> list[str]:
    """As grep prints them: `:` marks the line that was found, `-` those around it."""
    first = line - len(before)
    leading = [f"{path}-{first + place}-{each}" for place, each in enumerate(before)]
    trailing = [f"{path}-{line + 1 + place}-{each}" for place, each in enumerate(after)]
    return [*leading, f"{path}:{line}:{text}", *trailing]
