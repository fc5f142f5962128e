"""Where servers are configured, as seen from a folder: in the user's file, and in those of the workspace."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sidecar.cli.mcp.user_file import UserFile
from sidecar.cli.trust import trust_file
from sidecar.config_files.trust import TrustBook
from sidecar.config_files.workspace import read_workspace
from sidecar.protocol.codec import encode

JsonObject = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Source:
    """A file with servers. `obstacle` says why they are not used."""

    file: Path
    servers: JsonObject
    inputs: Sequence[JsonObject] = field(default=())
    obstacle: str = ""


def sources_of(file: UserFile, cwd: str | None) -> list[Source]:
    """The weakest first, as the sidecar would take them in this folder."""
    found = read_workspace(Path(cwd or "."))
    is_trusted = TrustBook(trust_file()).standing(found.folder, found.digests) == "trusted"
    obstacle = "" if is_trusted else "not trusted: agent-sidecar trust"
    of_workspace = [
        Source(
            file=found.folder / brought.name,
            servers=dict(brought.servers),
            inputs=encode(list(brought.inputs)),
            obstacle=obstacle,
        )
        for brought in reversed(found.files)
    ]
    return [Source(file=file.path, servers=file.servers, inputs=file.inputs), *of_workspace]


def in_use(sources: Sequence[Source]) -> JsonObject:
    """The entries that count, by name."""
    return {name: entry for source in sources if not source.obstacle for name, entry in source.servers.items()}


def inputs_of(sources: Sequence[Source]) -> list[JsonObject]:
    """The definitions of inputs that count."""
    return [wanted for source in sources if not source.obstacle for wanted in source.inputs]
