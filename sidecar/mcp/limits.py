"""Waiting no longer than allowed, where the time in which a person was waited for does not count."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

_SHORTEST_WAIT_SECS = 0.05
"""While time stands still an end moves on with the clock; it is looked at no more often than this."""

T = TypeVar("T")


async def within(limit_secs: float, work: Coroutine[Any, Any, T], *, paused_secs: Callable[[], float]) -> T:
    """The outcome of `work`. Raises TimeoutError after `limit_secs`, less what `paused_secs` says has passed."""
    loop = asyncio.get_running_loop()
    end = loop.time() + limit_secs - paused_secs()
    task = asyncio.create_task(work)
    try:
        while (left_secs := end + paused_secs() - loop.time()) > 0:
            await asyncio.wait({task}, timeout=max(left_secs, _SHORTEST_WAIT_SECS))
            if task.done():
                return task.result()
        raise TimeoutError
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
