"""Where sign-ins are kept: the system's keyring where it works, else a file readable by its owner alone."""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

from sidecar.mcp.oauth.keeping import Place, client_from, client_name, kept, tokens_from
from sidecar.mcp.oauth.secret_file import SecretFile, locked
from sidecar.mcp.oauth.system_keyring import Backend, KeyringEntries, system_backend
from sidecar.mcp.oauth.values import ClientIdentity, Tokens

KEYRING_LIMIT_SECS = 5.0
"""How long the keyring may take; one that asks a person to unlock it, on a desktop that is not there, never
answers. Own choice."""

FILE_LIMIT_SECS = 10.0
REFRESH_LOCK_SECS = 30.0
"""How long the refresh of another sidecar is waited for. Own choice: a bit more than one request takes."""

logger = logging.getLogger("sidecar.mcp")


class TokenStore:
    """Tokens and registered clients of one person. Nothing here raises: what cannot be kept is kept for now alone.

    `file` lies in the platform's data folder. `find_keyring` is asked once, when first needed.
    """

    def __init__(
        self,
        file: Path,
        *,
        find_keyring: Callable[[], Backend | None] = system_backend,
        keyring_limit_secs: float = KEYRING_LIMIT_SECS,
    ) -> None:
        self._file = SecretFile(file)
        self._file_path = file
        self._find_keyring = find_keyring
        self._keyring_limit_secs = keyring_limit_secs
        self._keyring: KeyringEntries | None = None
        self._is_keyring_known = False
        self._finding = asyncio.Lock()

    async def tokens(self, place: Place) -> Tokens | None:
        """The tokens that were kept there."""
        return tokens_from(await self._get(place.name))

    async def keep_tokens(self, place: Place, tokens: Tokens | None) -> None:
        """Keeps tokens; None takes them away."""
        await self._put(place.name, None if tokens is None else kept(tokens))

    async def client(self, issuer: str, resource: str) -> ClientIdentity | None:
        """The client that was registered with an issuer for a resource, unless its secret has ended."""
        return client_from(await self._get(client_name(issuer, resource)))

    async def keep_client(self, issuer: str, resource: str, client: ClientIdentity | None) -> None:
        """Keeps a client; None takes it away."""
        await self._put(client_name(issuer, resource), None if client is None else kept(client))

    @contextlib.asynccontextmanager
    async def refreshing(self, place: Place) -> AsyncIterator[None]:
        """While this lasts no other sidecar refreshes these tokens: a refresh token is often good for once."""
        lock = locked(self._file_path.with_name(f"{self._file_path.stem}-{place.name}"), REFRESH_LOCK_SECS)
        is_locked = await _attempt(lock.__enter__, REFRESH_LOCK_SECS + 1, "the lock of a sign-in")
        try:
            yield
        finally:
            if is_locked not in (_FAILED, _TOO_LATE):
                lock.__exit__(None, None, None)

    async def _get(self, name: str) -> dict[str, Any] | None:
        """The newer of two entries counts: a keyring may have taken one after it was given up."""
        keyring = await self._the_keyring()
        found = [await _attempt(partial(self._file.get, name), FILE_LIMIT_SECS, f"{self._file_path}")]
        if keyring is not None:
            found.append(await self._of_keyring(partial(keyring.get, name)))
        return max((entry for entry in found if isinstance(entry, dict)), key=_kept_at, default=None)

    async def _put(self, name: str, value: dict[str, Any] | None) -> None:
        """What a keyring does not take (Windows limits the size) goes into the file; it is never in both."""
        entry = None if value is None else {**value, "keptAt": time.time()}
        keyring = await self._the_keyring()
        in_keyring = False
        if keyring is not None:
            in_keyring = await self._of_keyring(partial(keyring.put, name, entry)) is not _FAILED
        if not in_keyring and self._keyring is not None:
            await self._of_keyring(partial(self._keyring.put, name, None))
        for_file = None if in_keyring else entry
        await _attempt(partial(self._file.put, name, for_file), FILE_LIMIT_SECS, f"{self._file_path}")

    async def _the_keyring(self) -> KeyringEntries | None:
        async with self._finding:
            if not self._is_keyring_known:
                backend = await _attempt(self._find_keyring, self._keyring_limit_secs, "the keyring")
                if backend not in (None, _FAILED, _TOO_LATE):
                    self._keyring = KeyringEntries(backend)
                self._is_keyring_known = True
        return self._keyring

    async def _of_keyring(self, do: Callable[[], Any]) -> Any:
        result = await _attempt(do, self._keyring_limit_secs, "the keyring")
        if result is _TOO_LATE:
            self._keyring = None  # Once is enough: it would hold up every sign-in.
            return _FAILED
        return result


@cache
def shared_store(file: Path) -> TokenStore:
    """The one store of this process for a file, so that the keyring is looked for once."""
    return TokenStore(file)


def _kept_at(entry: dict[str, Any]) -> float:
    when = entry.get("keptAt")
    return float(when) if isinstance(when, int | float) else 0.0


_FAILED = object()
_TOO_LATE = object()


async def _attempt(do: Callable[[], Any], limit_secs: float, what: str) -> Any:
    """What `do` gives, from a thread that nobody waits for longer than `limit_secs`; else _FAILED or _TOO_LATE."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def settle(outcome: Any) -> None:
        if not done.done():
            done.set_result(outcome)

    def run() -> None:
        try:
            outcome: Any = do()
        except Exception as error:  # noqa: BLE001  the boundary to keyrings, which raise whatever they like
            logger.warning("%s cannot be used: %s", what, type(error).__name__)
            outcome = _FAILED
        with contextlib.suppress(RuntimeError):  # The loop has ended meanwhile.
            loop.call_soon_threadsafe(settle, outcome)

    # A daemon, since a thread of the pool would hold up the end of the process.
    threading.Thread(target=run, daemon=True, name="sign-ins").start()
    try:
        async with asyncio.timeout(limit_secs):
            return await done
    except TimeoutError:
        logger.warning("%s did not answer within %g s and is not used", what, limit_secs)
        return _TOO_LATE
