"""Calling what the host passed in: async functions on the event loop, plain ones in threads."""

import asyncio
import contextvars
import inspect
import logging
import threading
from collections.abc import Callable
from typing import Any

log = logging.getLogger("sidecar_client")


async def call(function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """The function's result. A plain function runs in a thread of its own, so it may block.

    Cancelling this cancels an async function; a thread is left behind and its result dropped.
    """
    if inspect.iscoroutinefunction(function):
        return await function(*args, **named)
    result = await _in_thread(function, *args, **named)
    return await result if inspect.isawaitable(result) else result


async def _in_thread(function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """Daemon threads rather than the loop's executor, whose threads would hold up the end of the program."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)

    def run() -> None:
        value, error = None, None
        try:
            value = context.run(function, *args, **named)
        except BaseException as raised:  # noqa: BLE001  it belongs to whoever awaits, not to this thread
            error = raised
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, value, error)

    threading.Thread(target=run, name=f"sidecar-client-{function!r}", daemon=True).start()
    return await future


def guarded(callback: Callable[..., None]) -> Callable[..., None]:
    """The callback, except that what it raises is logged: it must not end the reading of the sidecar."""

    def guard(*args: Any) -> None:
        try:
            callback(*args)
        except Exception:
            log.exception("the host's callback %r failed", callback)

    return guard
