"""What a search in files looks for, whoever does it."""

import stat

from attrs import frozen

from sidecar.protocol.values import JsonObject
from sidecar.tools.builtin.tree import Glob
from sidecar.tools.workspace import Place, spot_of

MAX_MATCHES = 10_000
"""A search ends there; which of still more matches are found is left to chance. Own choice."""

MAX_SECS = 30.0
"""How long Python may search, for a pattern that takes forever on some line. Own choice."""


class SearchError(Exception):
    """The search cannot be done; the message is for the model that asked for it."""


@frozen(kw_only=True, eq=False)
class Search:
    """What is looked for, and where below the place. `glob` None: in all files."""

    pattern: str
    glob: Glob | None = None
    is_literal: bool = False
    ignores_case: bool = False
    context_lines: int = 0
    with_ignored: bool = False
    limit_secs: float = MAX_SECS

    @classmethod
    def of(cls, args: JsonObject) -> "Search":
        """The search that a call of `search_text` asks for. Raises SearchError for a glob that is none."""
        try:
            glob = Glob(args["glob"]) if "glob" in args else None
        except ValueError as error:
            raise SearchError(f"the glob cannot be used: {error}") from None
        return cls(
            pattern=args["pattern"],
            glob=glob,
            is_literal=args.get("literal", False),
            ignores_case=args.get("ignoreCase", False),
            context_lines=int(args.get("contextLines", 0)),
            with_ignored=args.get("includeIgnored", False),
        )


def is_folder(place: Place) -> bool:
    """Whether a place is a folder and not a file. Raises OSError for nothing, SearchError for a pipe."""
    if not place.parts:
        return True
    with spot_of(place) as spot:
        status = spot.stat()
    if status is None:
        raise FileNotFoundError
    if not stat.S_ISDIR(status.st_mode) and not stat.S_ISREG(status.st_mode):
        raise SearchError(f"{place.shown} is no ordinary file")  # Opening a pipe would wait for whoever writes.
    return stat.S_ISDIR(status.st_mode)
