"""What host and sidecar tell each other of themselves in LSP's `initialize`."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sidecar_client.errors import BrokenStream
from sidecar_client.frames import JsonObject

PROTOCOL_VERSION = "1.0"


def initialize_params(
    *,
    options: Mapping[str, Any],
    folder: Path,
    answers_approvals: bool,
    answers_input: bool,
    lends_models: bool,
    opt_out_events: Sequence[str],
) -> JsonObject:
    """The params of `initialize`: who we are, where we work, and what we can do."""
    host = {
        "protocolVersion": PROTOCOL_VERSION,
        "approvals": answers_approvals,
        "input": answers_input,
        "hostTools": True,
        "hostModel": lends_models,
        "optOutEvents": list(opt_out_events),
    }
    return {
        "processId": os.getpid(),
        "clientInfo": {"name": "sidecar-client"},
        "rootUri": folder.as_uri(),
        "workspaceFolders": [{"uri": folder.as_uri(), "name": folder.name}],
        "capabilities": {"experimental": {"agentSidecar": host}},
        "initializationOptions": dict(options),
    }


def described_by(result: Any) -> JsonObject:
    """What the answer to `initialize` says of the sidecar. Raises BrokenStream when it is no sidecar's."""
    try:
        described: JsonObject = result["capabilities"]["experimental"]["agentSidecar"]
        version = str(described["protocolVersion"])
    except (KeyError, TypeError):
        raise BrokenStream("not a sidecar: it answers initialize without experimental.agentSidecar") from None
    if version.partition(".")[0] != PROTOCOL_VERSION.partition(".")[0]:
        raise BrokenStream(f"the sidecar speaks protocol {version}; this library speaks {PROTOCOL_VERSION}")
    return described
