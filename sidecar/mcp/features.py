"""What a server offers beside tools: resources, prompts, completion, a log. One function for each request.

All raise ToolError: `mcpError` where the server does not offer it or refuses, `mcpTimeout`, `mcpNotInitialized`.
What comes back is MCP's own JSON, less what is none of it.
"""

import logging
from collections.abc import Collection
from typing import Any

from sidecar.mcp.client import Client
from sidecar.mcp.connection import ServerRefusalError
from sidecar.mcp.envelope import INVALID_PARAMS
from sidecar.mcp.listing import list_all
from sidecar.mcp.modern import META
from sidecar.protocol.errors import ToolError, ToolErrorKind
from sidecar.protocol.values import JsonObject

RESOURCE_NOT_FOUND = -32002
"""Until 2025-11-25; from 2026-07-28 on it is INVALID_PARAMS (server/resources#error-handling)."""

_BEFORE_COMPLETIONS = "2024-11-05"
"""The revision that has completion and no capability for it."""

logger = logging.getLogger("sidecar.mcp")


def offers(client: Client, feature: str) -> bool:
    """Whether a server is there and offers `resources`, `prompts`, `completions` or `logging`."""
    return client.protocol_version is not None and feature in all_offers(client)


def all_offers(client: Client) -> tuple[str, ...]:
    """All that a server offers, by name. One that writes null or false for a capability does not have it."""
    capabilities = client.session.capabilities
    return tuple(sorted(name for name, offered in capabilities.items() if offered not in (None, False)))


async def list_resources(client: Client) -> list[JsonObject]:
    """All resources, as `Resource` objects."""
    return await _list(client, "resources", "resources/list", "resources")


async def list_resource_templates(client: Client) -> list[JsonObject]:
    """All patterns of addresses that may be read, as `ResourceTemplate` objects."""
    return await _list(client, "resources", "resources/templates/list", "resourceTemplates")


async def list_prompts(client: Client) -> list[JsonObject]:
    """All prompts, as `Prompt` objects."""
    return await _list(client, "prompts", "prompts/list", "prompts")


async def read_resource(client: Client, uri: str) -> list[JsonObject]:
    """What is at an address, as `TextResourceContents` and `BlobResourceContents`. Raises `notFound` too."""
    _require(client, "resources")
    result = await _of_resource(client, "resources/read", uri)
    return _objects(client, "resources/read", result, "contents")


async def get_prompt(client: Client, name: str, arguments: dict[str, str]) -> JsonObject:
    """The messages that a prompt stands for. Raises `invalidArguments` too, also for a name that is unknown."""
    _require(client, "prompts")
    try:
        result = await client.request("prompts/get", {"name": name, "arguments": arguments})
    except ServerRefusalError as refusal:
        raise _refused(client, f"prompt {name!r}", refusal) from None
    return {**result, "messages": _objects(client, "prompts/get", result, "messages")}


async def complete(
    client: Client, ref: JsonObject, argument: JsonObject, context: JsonObject | None = None
) -> JsonObject:
    """Values that may be meant: `{values, total?, hasMore?}`. Raises `invalidArguments` too."""
    if client.session.protocol_version != _BEFORE_COMPLETIONS:
        _require(client, "completions")
    params: JsonObject = {"ref": ref, "argument": argument}
    if context is not None:
        params["context"] = context
    try:
        result = await client.request("completion/complete", params)
    except ServerRefusalError as refusal:
        raise _refused(client, f"to complete {argument.get('name')!r}", refusal) from None
    completion = result.get("completion")
    values = completion.get("values") if isinstance(completion, dict) else None
    if not isinstance(values, list):
        raise client.error("mcpError", f"server {client.name!r} answered completion/complete without values")
    return {**result["completion"], "values": [value for value in values if isinstance(value, str)]}


async def set_log_level(client: Client, level: str) -> None:
    """Asks for messages of this level and above, while the server lives; stateless ones are told each time."""
    _require(client, "logging")
    if client.session.is_modern:
        client.say_with_requests(f"{META}logLevel", level)
        return
    try:
        await client.request("logging/setLevel", {"level": level})
    except ServerRefusalError as refusal:
        raise _refused(client, f"the log level {level!r}", refusal) from None


async def watch_resources(client: Client, wanted: Collection[str], watched: set[str]) -> None:
    """Has the server tell of changes of the `wanted` resources alone; `watched` is kept to those that it tells of.

    Raises `notFound` too. What could be done before an error stays done.
    """
    _require(client, "resources")
    offered = client.session.capabilities["resources"]
    if not isinstance(offered, dict) or offered.get("subscribe") is not True:
        message = f"server {client.name!r} does not tell of changes of single resources"
        raise ToolError("mcpError", message, server=client.name)
    if client.session.is_modern:
        await client.listen_to_resources(wanted)
        watched.clear()
        watched.update(wanted)
        return
    for uri in sorted(watched.difference(wanted)):
        watched.discard(uri)
        await _of_resource(client, "resources/unsubscribe", uri)
    for uri in sorted(set(wanted) - watched):
        await _of_resource(client, "resources/subscribe", uri)
        watched.add(uri)


def tell_roots_changed(client: Client) -> None:
    """Tells a server that it may see other folders; one of a stateless revision asks when it wants to know."""
    if not client.session.is_modern:
        client.notify("notifications/roots/list_changed")


# Answers ------------------------------------------------------------------------------------------------


async def _of_resource(client: Client, method: str, uri: str) -> JsonObject:
    try:
        return await client.request(method, {"uri": uri})
    except ServerRefusalError as refusal:
        if refusal.code in (RESOURCE_NOT_FOUND, INVALID_PARAMS):
            message = f"server {client.name!r} has no resource {uri!r}: {refusal.message}"
            raise ToolError("notFound", message, server=client.name, uri=uri) from None
        raise _refused(client, f"{method} of {uri!r}", refusal) from None


async def _list(client: Client, feature: str, method: str, field: str) -> list[JsonObject]:
    _require(client, feature)
    listed = await list_all(
        client.request,
        method,
        field,
        next_cursor=client.session.next_cursor,
        server=client.name,
        warn=lambda warning: logger.warning("server %r: %s", client.name, warning),
    )
    return [entry for entry in listed.entries if isinstance(entry, dict)]


def _objects(client: Client, method: str, result: JsonObject, field: str) -> list[JsonObject]:
    entries: Any = result.get(field)
    if not isinstance(entries, list):
        raise client.error("mcpError", f"server {client.name!r} answered {method} without {field}")
    return [entry for entry in entries if isinstance(entry, dict)]


def _require(client: Client, feature: str) -> None:
    offered = all_offers(client)
    if feature not in offered:
        message = f"server {client.name!r} offers no {feature}; it offers {', '.join(offered) or 'nothing'}"
        raise ToolError("mcpError", message, server=client.name)


def _refused(client: Client, what: str, refusal: ServerRefusalError) -> ToolError:
    kind: ToolErrorKind = "invalidArguments" if refusal.code == INVALID_PARAMS else "mcpError"
    said = {"code": refusal.code, "data": refusal.data}
    answer = {name: value for name, value in said.items() if value is not None}
    message = f"server {client.name!r} refused {what}: {refusal.message}"
    return ToolError(kind, message, server=client.name, serverError=answer)
