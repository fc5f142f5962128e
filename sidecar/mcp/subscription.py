"""Word of changes from a modern server: `subscriptions/listen`, asked for again whenever it has broken off."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable

from sidecar.mcp.connection import ServerRefusalError
from sidecar.mcp.pending import Heard
from sidecar.protocol.errors import ToolError
from sidecar.protocol.values import JsonObject

FIRST_PAUSE_SECS = 0.5
LONGEST_PAUSE_SECS = 60.0
"""Before it is asked for again: each pause is twice the one before, less a random part of up to a half."""

STEADY_SECS = 60.0
"""What has lasted so long was no failure: the next pause is a short one again."""

_CHANGES = {"tools": "toolsListChanged", "prompts": "promptsListChanged", "resources": "resourcesListChanged"}

logger = logging.getLogger("sidecar.mcp")


def wanted_of(capabilities: JsonObject) -> JsonObject:
    """The changes that a server with these capabilities can tell of (MCP 2026-07-28, subscriptions)."""
    return {
        wanted: True
        for feature, wanted in _CHANGES.items()
        if isinstance(offered := capabilities.get(feature), dict) and offered.get("listChanged") is True
    }


async def keep_listening(
    listen: Callable[[Heard], Awaitable[None]], heard: Heard, *, on_gap: Callable[[], None]
) -> None:
    """Listens until the server refuses that; runs as a task.

    `listen` subscribes once and returns or raises at its end. `on_gap` is told when a subscription has begun
    again: what has happened in between was not heard.
    """
    pause_secs, is_first = FIRST_PAUSE_SECS, True
    loop = asyncio.get_running_loop()

    def took(method: str, params: JsonObject) -> None:
        if method != "notifications/subscriptions/acknowledged":
            heard(method, params)
        elif not is_first:
            on_gap()

    while True:
        began = loop.time()
        try:
            await listen(took)
        except ServerRefusalError as refusal:
            logger.info("a server tells of no changes: %s", refusal.message)
            return
        except ToolError as error:
            logger.info("a subscription broke off: %s", error.message)
        if loop.time() - began > STEADY_SECS:
            pause_secs = FIRST_PAUSE_SECS
        await asyncio.sleep(pause_secs * random.uniform(0.5, 1.0))
        pause_secs, is_first = min(2 * pause_secs, LONGEST_PAUSE_SECS), False
