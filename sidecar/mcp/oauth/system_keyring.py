"""The keyring of the operating system, where there is one that works.

The library `keyring` finds it. It takes half a second to load and may ask the desktop, which may never answer; so
everything here blocks, and `store.py` calls it in a thread, for a limited time.
"""

import json
import logging
from importlib import import_module
from typing import Any, Protocol

SERVICE = "agent-sidecar MCP sign-ins"

LEAST_PRIORITY = 1.0
"""What `keyring` recommends by this or more is a real one; files of plain text and stand-ins are below."""

logger = logging.getLogger("sidecar.mcp")


class Backend(Protocol):
    """The part of a backend of `keyring` that is used."""

    def get_password(self, service: str, username: str) -> str | None: ...

    def set_password(self, service: str, username: str, password: str) -> None: ...

    def delete_password(self, service: str, username: str) -> None: ...


def system_backend() -> Backend | None:
    """The keyring of this machine and user; None where there is none worth the name."""
    # 400 ms, and needed by servers with OAuth alone.
    backend: Any = import_module("keyring").get_keyring()
    if float(backend.priority) < LEAST_PRIORITY:
        return None
    found: Backend = backend
    return found


class KeyringEntries:
    """JSON objects by name in a keyring. Whatever a backend raises rises."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def get(self, name: str) -> dict[str, Any] | None:
        """The object of that name."""
        text = self._backend.get_password(SERVICE, name)
        if text is None:
            return None
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            logger.warning("an entry of the keyring was damaged and is passed over; sign in again")
            return None
        return value if isinstance(value, dict) else None

    def put(self, name: str, value: dict[str, Any] | None) -> None:
        """Keeps an object; None takes it away."""
        if value is not None:
            self._backend.set_password(SERVICE, name, json.dumps(value))
        elif self._backend.get_password(SERVICE, name) is not None:
            self._backend.delete_password(SERVICE, name)
