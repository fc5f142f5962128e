"""The flag `--allow`, as far as the sidecar has to know: what is denied, and named there, is denied no more."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

from sidecar_client import Sidecar

WORDS = ("read", "write", "delete", "network", "shell", "filesystem")
"""The permissions without a name space; see protocol.md, "Permissions"."""


async def session_allowing(sidecar: Sidecar, allowed: Sequence[str], session_id: str | None = None) -> str | None:
    """The session, or a new one, with these permissions not denied; as it is where nothing is to be allowed.

    Questions are still asked, and answered without bothering anybody: a tool that is named by `--allow` may need
    a permission that is not. Raises ClientError.
    """
    permissions = [pattern for pattern in allowed if pattern in WORDS or ":" in pattern]
    if not permissions:
        return session_id
    if session_id is None:
        session_id = str((await sidecar.request("session/create"))["sessionId"])
    now = await sidecar.request("permissions/get", {"sessionId": session_id})
    changed = {
        "denied": [entry for entry in now["denied"] if not _is_named(entry, permissions)],
        # An empty list is no white list, and must not become one.
        "allowed": [*now["allowed"], *permissions] if now["allowed"] else [],
    }
    await sidecar.request("permissions/set", {"scope": "session", "sessionId": session_id, **changed})
    return session_id


def _is_named(entry: str, permissions: Sequence[str]) -> bool:
    return any(fnmatchcase(entry, pattern) for pattern in permissions)
