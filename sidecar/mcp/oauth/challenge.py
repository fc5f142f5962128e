"""`WWW-Authenticate`: what a server says when it does not let a request in (RFC 9110, 11.6.1). Pure.

Servers write this header in every way there is, so nothing here fails: what cannot be read is passed over.
"""

import re
from collections.abc import Iterator, Mapping

from attrs import field, frozen

MAX_HEADER_CHARS = 16 * 1024
"""Longer ones are cut. Own choice."""

_SCHEME = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+)(?:[ \t]+|(?=,|$))")
_PARAMETER = re.compile(
    r"([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*=[ \t]*"
    r"(?:\"((?:[^\"\\]|\\.)*)\"?|([^\s,\"]*))"
)
_TOKEN68 = re.compile(r"[A-Za-z0-9._~+/-]+=+(?=[ \t]*(?:,|$))")
"""What other schemes than ours have in place of parameters."""

_BETWEEN = re.compile(r"[ \t\r\n,]*")
_REST = re.compile(r"[^,]*")


@frozen
class Challenge:
    """One scheme with its parameters; the names of both in lower case. The first of two equal names counts."""

    scheme: str
    parameters: Mapping[str, str] = field(factory=dict)

    @property
    def error(self) -> str | None:
        return self.parameters.get("error")

    @property
    def resource_metadata(self) -> str | None:
        """Where the metadata of the resource is (RFC 9728, 5.1)."""
        return self.parameters.get("resource_metadata")

    @property
    def scopes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.parameters.get("scope", "").split()))


NO_CHALLENGE = Challenge("")
"""What a server says that says nothing."""


def header(headers: Mapping[str, str], name: str) -> str | None:
    """A header by its name in any case."""
    return next((value for key, value in headers.items() if key.lower() == name), None)


def token_challenge(headers: Mapping[str, str]) -> Challenge:
    """The challenge that asks for a token: that for DPoP or Bearer, whichever says more; else NO_CHALLENGE."""
    challenges = read_challenges(header(headers, "www-authenticate") or "")
    ours = [challenge for challenge in challenges if challenge.scheme in ("bearer", "dpop")]
    return max(ours, key=lambda challenge: len(challenge.parameters), default=NO_CHALLENGE)


def read_challenges(text: str) -> tuple[Challenge, ...]:
    """All challenges of a header; several header lines are one, joined by commas."""
    return tuple(Challenge(scheme, parameters) for scheme, parameters in _read(text[:MAX_HEADER_CHARS]))


def _read(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    current: tuple[str, dict[str, str]] | None = None
    position = 0
    while position < len(text):
        position = _end(_BETWEEN, text, position)
        if found := _TOKEN68.match(text, position):
            pass
        elif (found := _PARAMETER.match(text, position)) and current is not None:
            name, quoted, plain = found.groups()
            value = plain if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
            current[1].setdefault(name.lower(), value)
        elif found := _SCHEME.match(text, position):
            if current is not None:
                yield current
            current = (found[1].lower(), {})
        else:
            found = _REST.match(text, position)
        position = max(found.end() if found else 0, position + 1)
    if current is not None:
        yield current


def _end(pattern: re.Pattern[str], text: str, position: int) -> int:
    found = pattern.match(text, position)
    return found.end() if found else position
