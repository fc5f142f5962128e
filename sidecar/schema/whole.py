"""The whole protocol as a model: with the options, which the packages declare that read them.

The conformance kit takes `meta_model` as it is. It judges any sidecar, and knows nothing of ours.
"""

from sidecar.config import Options
from sidecar.mcp.config import HttpServer, StdioServer
from sidecar.mcp.oauth.options import OAuthOptions
from sidecar.protocol.values import JsonObject
from sidecar.schema.model import HANDSHAKE, meta_model


def whole_model() -> JsonObject:
    """What travels, and what `initializationOptions` may hold.

    Two fields are kept as they come, and their insides are read by others. An entry of `mcpServers` that is
    neither of ours makes no `initialize` fail, but that one server.
    """
    return meta_model(
        handshake={"params.initializationOptions": Options, **HANDSHAKE},
        names={Options: "InitializationOptions"},
        insides={
            (Options, "mcp_servers"): dict[str, StdioServer | HttpServer | JsonObject],
            (HttpServer, "oauth"): OAuthOptions,
        },
    )
