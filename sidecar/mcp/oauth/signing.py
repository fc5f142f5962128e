"""JWTs that we sign: who the client is (RFC 7523), and that a token is ours (RFC 9449, DPoP)."""

import asyncio
import base64
import hashlib
import time
import uuid
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from attrs import field, frozen

from sidecar.mcp.oauth.options import OAuthOptions
from sidecar.protocol.errors import ConfigurationError

ASSERTION_LIFE_SECS = 300
"""How long a statement about the client is good for. Own choice."""

DPOP_ALGORITHMS = ("ES256", "EdDSA", "RS256")
"""Those that we make keys for, the best first."""


@cache
def _jose() -> ModuleType:
    # PyJWT and cryptography take 150 ms to load, and few servers want a signature.
    return import_module("sidecar.mcp.oauth.jose")


def client_assertion(options: OAuthOptions, client_id: str, audience: str, *, path: str) -> str:
    """A JWT in which the client says who it is (RFC 7523, 3). Raises ConfigurationError for a wrong key."""
    jose = _jose()
    now = int(time.time())
    claims = {
        "iss": client_id,
        "sub": client_id,
        "aud": audience,
        "iat": now,
        "exp": now + ASSERTION_LIFE_SECS,
        "jti": uuid.uuid4().hex,
    }
    headers = {"kid": options.key_id} if options.key_id else {}
    pem = (options.private_key_pem or "").replace("\\n", "\n")  # Variables often hold it on one line.
    try:
        key = jose.load_key(pem)
        return str(jose.sign(claims, key, options.signing_algorithm or jose.algorithm_of(key), headers))
    except ValueError as error:
        raise ConfigurationError(f"{path}.privateKeyPem: {error}", path=f"{path}.privateKeyPem") from None


async def new_key(algorithms: tuple[str, ...]) -> "DpopKey | None":
    """A new key for one of the algorithms that a server takes; None where we make none of them."""
    algorithm = next((known for known in DPOP_ALGORITHMS if known in algorithms), None)
    if algorithm is None:
        return None
    key = await asyncio.to_thread(lambda: _jose().new_key(algorithm))  # With the loading, up to 0.5 s.
    return DpopKey(algorithm=algorithm, private_key=key)


async def kept_key(pem: str) -> "DpopKey | None":
    """The key that `DpopKey.pem` gave; None where it cannot be read any more."""
    try:
        key = await asyncio.to_thread(lambda: _jose().load_key(pem))
    except ValueError:
        return None
    return DpopKey(algorithm=_jose().algorithm_of(key), private_key=key)


@frozen(kw_only=True, eq=False)
class DpopKey:
    """A key of our own that tokens are bound to."""

    algorithm: str
    private_key: Any = field(repr=False)

    @property
    def pem(self) -> str:
        """The key as text, to be kept."""
        return str(_jose().pem_of(self.private_key))

    def proof(self, method: str, url: str, *, nonce: str | None, access_token: str | None = None) -> str:
        """The value of the header `DPoP` for one request (RFC 9449, 4.2)."""
        parts = urlsplit(url)
        claims: dict[str, Any] = {
            "jti": uuid.uuid4().hex,
            "htm": method.upper(),
            "htu": urlunsplit((parts.scheme, parts.netloc, parts.path or "/", "", "")),
            "iat": int(time.time()),
        }
        if nonce is not None:
            claims["nonce"] = nonce
        if access_token is not None:
            digest = hashlib.sha256(access_token.encode("ascii")).digest()
            claims["ath"] = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        headers = {"typ": "dpop+jwt", "jwk": _jose().public_jwk(self.private_key, self.algorithm)}
        return str(_jose().sign(claims, self.private_key, self.algorithm, headers))
