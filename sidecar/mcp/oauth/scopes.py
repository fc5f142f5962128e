"""Which scopes are asked for (MCP 2025-11-25, scope selection strategy and scope challenge handling). Pure."""

from sidecar.mcp.oauth.challenge import Challenge
from sidecar.mcp.oauth.discovery import Guarded
from sidecar.mcp.oauth.options import OAuthOptions

OFFLINE = "offline_access"
"""The scope that brings a refresh token, at servers that have it."""


def scopes_to_ask(
    options: OAuthOptions, guarded: Guarded, challenge: Challenge, *, had: tuple[str, ...]
) -> tuple[str, ...]:
    """What the user says, else what the challenge says, else what the resource says; and what we `had` before.

    Once we had something, what the challenge names is added to it, so that a step up takes nothing away.
    """
    offered = guarded.resource.scopes if guarded.resource is not None else ()
    challenged = challenge.scopes or offered
    base = (*had, *challenged) if had else options.wanted_scopes or challenged
    scopes = tuple(dict.fromkeys(base))
    is_offline_offered = OFFLINE in guarded.server.scopes and options.grant == "authorization_code"
    return (*scopes, OFFLINE) if scopes and is_offline_offered and OFFLINE not in scopes else scopes
