"""What can go wrong between a 401 and a token.

AuthorizationFailure        something is not as it must be, or cannot be reached
├── TokenRefused            the token endpoint answered with an error of OAuth
└── PersonNeeded            somebody has to sign in, and nobody is there, or nobody did
    └── SignInDeclined      the person, or the server on the sign-in page, said no

`authorization.py` makes a ToolError of each, which names the MCP server.
"""

import re

MAX_WORDS_CHARS = 200
"""How much of a server's own words is shown."""


class AuthorizationFailure(Exception):
    """The message is a sentence that does not name the MCP server, without secrets."""


class TokenRefused(AuthorizationFailure):
    """The token endpoint refused. `code` is OAuth's, as in `invalid_grant`."""

    def __init__(self, endpoint: str, code: str, words: str) -> None:
        said = f"{code} ({words})" if words else code
        super().__init__(f"{endpoint} refused to give a token: {said}")
        self.code = code


class PersonNeeded(AuthorizationFailure):
    """Only a person can go on from here, and none did."""


class SignInDeclined(PersonNeeded):
    """Somebody said no; asking again at once would be rude."""


def quoted(value: object) -> str:
    """What came from outside, to be shown in an error; not all of it, where it is long."""
    text = repr(value)
    return text if len(text) <= MAX_WORDS_CHARS else f"{text[:MAX_WORDS_CHARS]}…"


def shown_words(text: object) -> str:
    """A server's own words, fit for one line of an error: printable, short; empty for what is no text."""
    if not isinstance(text, str):
        return ""
    words = " ".join(re.sub(r"[^\x20-\x7e\u00a0-\U0010ffff]", " ", text).split())
    return words if len(words) <= MAX_WORDS_CHARS else f"{words[:MAX_WORDS_CHARS]}…"
