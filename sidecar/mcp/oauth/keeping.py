"""What is kept of sign-ins from one start to the next: values to JSON and back, and the names they are kept by.

Everything is kept by issuer, so that one authorization server never sees what another one gave.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import frozen

from sidecar.mcp.oauth.values import ClientIdentity, Tokens
from sidecar.protocol.codec import DecodeError, decode, encode

T = TypeVar("T")


@frozen(kw_only=True)
class Place:
    """Whose tokens: of which client, from which issuer, for which resource."""

    issuer: str
    resource: str
    client_id: str

    @property
    def name(self) -> str:
        """A name without any secret that fits everywhere."""
        return f"tokens-{_digest(self.issuer, self.resource, self.client_id)}"


def client_name(issuer: str, resource: str) -> str:
    """The name by which the client is kept that we registered with an issuer for a resource."""
    return f"client-{_digest(issuer, resource)}"


def kept(value: Tokens | ClientIdentity) -> dict[str, Any]:
    """The value as JSON."""
    encoded: dict[str, Any] = encode(value)
    return encoded


def tokens_from(document: Mapping[str, Any] | None) -> Tokens | None:
    """Tokens that were kept; None for what is no longer understood."""
    return _from(document, Tokens)


def client_from(document: Mapping[str, Any] | None) -> ClientIdentity | None:
    """A client that was kept and has not ended; None for what is no longer understood."""
    client = _from(document, ClientIdentity)
    return None if client is None or client.has_ended else client


def _from(document: Mapping[str, Any] | None, shape: type[T]) -> T | None:
    try:
        return None if document is None else decode(dict(document), shape, path="")
    except DecodeError:
        return None


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
