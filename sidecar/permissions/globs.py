"""Globs over names and over texts that may be paths, commands or addresses. Pure.

In a name `*` stands for anything. In a text `*` and `?` stop at `/`, `**` does not, and `**/` is any number of
folders or none; before the first `/` of an address (`https://*.example.com/**`) they keep to its host. `[abc]`
is one of these characters, `[!abc]` one of the others; `[*]` is a plain star. Syntax: own choice, after gitignore.
"""

import itertools
import re
from collections.abc import Iterator
from functools import lru_cache

_WILDCARDS = ("*", "?", "[")
_TOKEN = re.compile(r"\*\*/|\*\*+|\*|\?|\[!?\]?[^\]]*\]|.", re.DOTALL)
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_PERCENT_ENCODED = re.compile(r"%(2e|2f|5c)", re.IGNORECASE)
_ABSOLUTE = re.compile(r"/|[A-Za-z]:/|file:", re.IGNORECASE)
_LONGEST_PATH = 4096
"""Characters; what is longer is no path (Linux's PATH_MAX), however it begins."""


def name_matches(glob: str, name: str) -> bool:
    """Whether a glob over names (of tools, of permissions) takes `name`."""
    return glob == name or (is_glob(glob) and bool(_name_pattern(glob).fullmatch(name)))


def is_glob(text: str) -> bool:
    """Whether a name is a glob over names."""
    return any(wildcard in text for wildcard in _WILDCARDS)


def matches_exactly(glob: str, text: str) -> bool:
    """Whether a glob that allows takes `text`: as written, and never by way of a `..` that leads out of it."""
    if not _text_pattern(glob, exact=True).fullmatch(text):
        return False
    plain = _with_plain_slashes(text)
    if ".." not in plain.split("/"):
        return True
    # The text climbs. It must be inside the glob where it ends, too, and start no higher than the glob does.
    base, place = _collapsed(_with_plain_slashes(glob)), _collapsed(plain)
    return _climbs(base) == _climbs(place) and bool(_text_pattern(base, exact=True).fullmatch(place))


def matches_generously(glob: str, text: str) -> bool:
    """Whether a glob that denies or asks takes `text` in any spelling.

    Letter case, backslashes, `.` and `..` make no difference, and a glob without a leading `/` takes an
    absolute path from any of its folders on: which folder is the workspace is not known here.
    """
    pattern = _text_pattern(glob, exact=False)
    return any(pattern.fullmatch(spelling) for spelling in _spellings(text))


def quoted(text: str) -> str:
    """The glob that takes `text` alone."""
    return re.sub(r"[*?\[]", r"[\g<0>]", text)


def _spellings(text: str) -> Iterator[str]:
    yield text
    place = _collapsed(_with_plain_slashes(text))
    yield place
    yield f"{place}/"  # A folder is part of what is under it.
    if _ABSOLUTE.match(place) and len(place) <= _LONGEST_PATH:
        segments = place.split("/")
        yield from ("/".join(segments[start:]) for start in range(1, len(segments)))


def _with_plain_slashes(text: str) -> str:
    """Backslashes separate on Windows, and `%2e%2e%2f` may climb on a server."""
    if _ADDRESS.match(text):
        text = _PERCENT_ENCODED.sub(lambda found: chr(int(found[1], 16)), text)
    return text.replace("\\", "/")


def _collapsed(path: str) -> str:
    """Without `.` and `..`, as far as the text alone tells."""
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            if kept and kept[-1] not in ("", ".."):
                kept.pop()
            elif kept != [""]:
                kept.append(segment)
        elif segment != ".":
            kept.append(segment)
    return "/".join(kept)


def _climbs(collapsed: str) -> int:
    """How many folders above its start a collapsed path begins."""
    return collapsed.split("/").count("..")


@lru_cache(maxsize=1024)
def _name_pattern(glob: str) -> re.Pattern[str]:
    return re.compile("".join(_name_token(token) for token in _TOKEN.findall(glob)), re.DOTALL)


def _name_token(token: str) -> str:
    if token.startswith("*"):
        return _ANYTHING + re.escape(token.strip("*"))
    return _one_character(token, "")


@lru_cache(maxsize=1024)
def _text_pattern(glob: str, *, exact: bool) -> re.Pattern[str]:
    address = _ADDRESS.match(glob)
    host_end = glob.find("/", address.end()) if address else 0
    if host_end < 0:
        host_end = len(glob)
    # Without these, `https://*.example.com/**` would take `https://evil.test?.example.com/`.
    tokens = [*_tokens(glob[:host_end], "/?#@\\\\"), *_tokens(glob[host_end:], "/")]
    flags = re.DOTALL if exact else re.DOTALL | re.IGNORECASE
    return re.compile(_expression(tokens), flags)


_ANYTHING = ".*"
_START_OF_SEGMENT = "(?<![^/])"


def _tokens(glob: str, closed: str) -> Iterator[str]:
    """`closed` are the characters that `*` and `?` do not cross, as inside a regular expression's class."""
    before = "/"
    for token in _TOKEN.findall(glob):
        match token:
            case "**/":
                yield from (_ANYTHING, _START_OF_SEGMENT if before.endswith("/") else "/")
            case "*":
                yield f"[^{closed}]*"
            case _ if token.startswith("**"):
                yield _ANYTHING
            case _:
                yield _one_character(token, closed)
        before = token


def _expression(tokens: list[str]) -> str:
    """The tokens as one expression, in which each wildcard but the last tries the nearest match alone.

    That is enough, since the next wildcard takes whatever a later match would have skipped; and without it a
    model could keep `**a**b**c` busy for hours with a long text.
    """
    first, *others = _split(tokens, _ANYTHING)
    if not others:
        return _piece(first, whole=True)
    *inner, last = others
    nearest = "".join(f"(?>.*?{_piece(piece)})" for piece in inner)
    return f"(?>{_piece(first)}){nearest}.*{_piece(last, whole=True)}"


def _piece(tokens: list[str], *, whole: bool = False) -> str:
    """What stands between two `**`; `whole` when nothing follows, so that the last `*` has to reach the end."""
    stars = [place for place, token in enumerate(tokens) if token.endswith("]*")]
    if not stars:
        return "".join(tokens)
    runs = ["".join(tokens[start + 1 : end]) for start, end in itertools.pairwise((*stars, len(tokens)))]
    found = [f"(?>{tokens[star]}?{run})" for star, run in zip(stars, runs, strict=True)]
    if whole:
        found[-1] = tokens[stars[-1]] + runs[-1]
    return "".join((*tokens[: stars[0]], *found))


def _split(tokens: list[str], separator: str) -> list[list[str]]:
    pieces: list[list[str]] = [[]]
    for token in tokens:
        if token == separator:
            pieces.append([])
        else:
            pieces[-1].append(token)
    return pieces


def _one_character(token: str, closed: str) -> str:
    barrier = f"(?![{closed}])" if closed else ""
    if token == "?":
        return f"{barrier}."
    if len(token) == 1:
        return re.escape(token)
    negated = token.startswith("[!")
    members = re.sub(r"[\\\[\]^&~|]", r"\\\g<0>", token[2:-1] if negated else token[1:-1])
    members = members.replace("--", r"\-\-")  # Python warns of what a set difference would look like.
    one_of = f"[^{members}]" if negated else f"[{members}]"
    try:
        re.compile(one_of)
    except re.error:  # `[z-a]` or `[]` is nobody's set, so it stands for itself.
        return re.escape(token)
    return f"{barrier}{one_of}"
