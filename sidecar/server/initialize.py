"""What `initialize` brings and what it is answered with. Strict where we act on it, silent about the rest."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from attrs import frozen
from pygls import uris

from sidecar.protocol.codec import DecodeError, decode, encode
from sidecar.protocol.events import EVENTS
from sidecar.protocol.handshake import SidecarDescription
from sidecar.protocol.methods import METHODS, PROTOCOL_VERSION
from sidecar.protocol.values import JsonObject


@frozen(kw_only=True)
class ClientInfo:
    """Who the host is, in its own words."""

    name: str
    version: str | None = None


@frozen(kw_only=True)
class WorkspaceFolder:
    """A folder as LSP writes it."""

    uri: str
    name: str = ""


@frozen(kw_only=True)
class InitializeParams:
    """LSP 3.17 `InitializeParams`, as far as we act on them."""

    process_id: int | None = None
    client_info: ClientInfo | None = None
    root_path: str | None = None
    root_uri: str | None = None
    workspace_folders: tuple[WorkspaceFolder, ...] | None = None
    initialization_options: Any = None
    capabilities: Any = None


@frozen(kw_only=True)
class Initialization:
    """What the services are opened for. `options` is the host's `initializationOptions`, as it came."""

    options: Any
    workspace_folders: tuple[Path, ...]
    process_id: int | None
    client_name: str | None
    client_version: str | None


@frozen(kw_only=True)
class Opened:
    """What opening gave: the services, and what the host is told of them.

    `models` are those that the options name, as `provider/model`; `max_frame_bytes` replaces the limit.
    """

    services: Any
    models: tuple[str, ...] = ()
    max_frame_bytes: int | None = None


def read_initialize(params: Any) -> InitializeParams:
    """Raises DecodeError naming the field."""
    read = decode({} if params is None else params, InitializeParams)
    if read.root_uri is not None:
        _check_uri(read.root_uri, "params.rootUri")
    if read.root_path is not None and "\0" in read.root_path:
        raise DecodeError("params.rootPath", f"is no path: {read.root_path!r}")
    for index, folder in enumerate(read.workspace_folders or ()):
        _check_uri(folder.uri, f"params.workspaceFolders[{index}].uri")
    return read


def initialization(params: InitializeParams) -> Initialization:
    """The same in the words of the services."""
    client = params.client_info
    return Initialization(
        options=params.initialization_options,
        workspace_folders=_folders(params),
        process_id=params.process_id,
        client_name=client.name if client else None,
        client_version=client.version if client else None,
    )


def agent_sidecar(methods: Iterable[str], models: tuple[str, ...]) -> JsonObject:
    """Our part of the answer, in the order of the protocol's table."""
    offered = set(methods)
    described: JsonObject = encode(
        SidecarDescription(
            protocol_version=PROTOCOL_VERSION,
            methods=tuple(name for name in METHODS if name in offered),
            events=tuple(EVENTS),
            models=models,
        )
    )
    return described


def _folders(params: InitializeParams) -> tuple[Path, ...]:
    """`workspaceFolders`, else `rootUri`, else `rootPath`; folders that are not on a disk are left out."""
    if params.workspace_folders:
        addresses = [folder.uri for folder in params.workspace_folders]
    elif params.root_uri:
        addresses = [params.root_uri]
    else:
        return (Path(params.root_path),) if params.root_path else ()
    paths = map(uris.to_fs_path, addresses)
    return tuple(Path(path) for path in paths if path)


def _check_uri(uri: str, path: str) -> None:
    try:
        folder = uris.to_fs_path(uri)
    except ValueError:
        raise DecodeError(path, f"is no URI: {uri!r}") from None
    if folder and "\0" in folder:
        raise DecodeError(path, f"is no path: {folder!r}")
