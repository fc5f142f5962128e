"""Searches with ripgrep where it is there and understands the pattern, else with Python."""

from collections.abc import Callable

from sidecar.protocol.values import JsonObject
from sidecar.tools.builtin.found import Found
from sidecar.tools.builtin.python_search import python_search
from sidecar.tools.builtin.ripgrep import PatternRefusedError, ripgrep_path, ripgrep_search
from sidecar.tools.builtin.search_query import Search, SearchError
from sidecar.tools.threads import in_thread
from sidecar.tools.workspace import Place

__all__ = ["SearchError", "search_tree"]


async def search_tree(place: Place, args: JsonObject, is_cancelled: Callable[[], bool]) -> Found:
    """What a call of `search_text` finds below a folder, or in a file. Raises SearchError and OSError."""
    search = Search.of(args)
    program = ripgrep_path()
    if program is not None:
        try:
            return await ripgrep_search(program, search, place)
        except PatternRefusedError:
            pass  # Look-around, for instance, is nothing to ripgrep; and Python says better what is wrong.
    return await in_thread(python_search, search, place, is_cancelled)
