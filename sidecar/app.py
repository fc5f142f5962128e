"""The composition root: what a sidecar is made of, how it is opened for a host and closed again."""

import argparse
import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import platformdirs
from attrs import frozen

from sidecar.agent.models import Models, default_model
from sidecar.agent.sampling import sample
from sidecar.agent.sessions import Sessions
from sidecar.config import (
    Options,
    approval_timeout_secs,
    cycle_config,
    folder_path,
    layered,
    permission_config,
    read_options,
    read_user_file,
    secret_settings,
    secret_variables,
    server_wait_secs,
    store_place,
)
from sidecar.config_files.server_files import InputDefinition
from sidecar.config_files.trust import FILE_NAME, TrustBook
from sidecar.config_files.workspace import FILES
from sidecar.mcp.client import Client
from sidecar.mcp.features import offers
from sidecar.mcp.manager import McpManager
from sidecar.mcp.oauth.sign_ins import SignIns
from sidecar.mcp.results import McpToolDefinition
from sidecar.mcp.verdicts import Verdicts
from sidecar.permissions.book import PermissionBook
from sidecar.protocol.secrets import Secrets
from sidecar.protocol.values import JsonObject, ToolSource
from sidecar.server.documents import EditorDocuments
from sidecar.server.folders import Folders
from sidecar.server.guard import take_standard_streams
from sidecar.server.handlers import HANDLERS, LISTENERS
from sidecar.server.host import Host
from sidecar.server.initialize import Initialization, Opened
from sidecar.server.lending import Lending
from sidecar.server.log import LEVELS, configure_logging
from sidecar.server.mcp_offers import offers_of
from sidecar.server.notices import Notices
from sidecar.server.questions import Questions
from sidecar.server.rpc import SidecarServer
from sidecar.server.services import Services, SubmitDefaults
from sidecar.server.sign_in_page import SignInPage
from sidecar.server.stdio import serve_stdio
from sidecar.server.watched_files import WatchedFiles
from sidecar.store.errors import StoreError
from sidecar.store.pins import PinnedTools
from sidecar.store.store import Store
from sidecar.tools.builtin import BUILTIN
from sidecar.tools.loading import add_tools, fault_of_entry
from sidecar.tools.mcp_resources import RESOURCE_TOOLS
from sidecar.tools.mcp_tools import check_permissions, digest_of, registered_name, sync_server_tools
from sidecar.tools.registry import ToolRegistry
from sidecar.workspace import Brought, WorkspaceTrust, brought_by, use_now

OnTools = Callable[[str, Client | None, tuple[McpToolDefinition, ...]], None]


@frozen(kw_only=True)
class Launch:
    """What the command line says. `config_file` is given or the user's own, which need not be there."""

    model: str | None = None
    config_file: Path | None = None
    cwd: Path | None = None
    log_file: Path | None = None
    log_level: str = "warning"
    tools: tuple[str, ...] = ()


def config_path() -> Path:
    """Where the user's configuration is looked for."""
    return Path(platformdirs.user_config_dir("agent-sidecar", appauthor=False)) / "config.toml"


def verdicts_path() -> Path:
    """Where it is kept what MCP servers have turned out to speak; it may be deleted at any time."""
    return Path(platformdirs.user_cache_dir("agent-sidecar", appauthor=False)) / "mcp-servers.json"


def sign_ins_path() -> Path:
    """Where sign-ins to MCP servers are kept, where the system has no keyring."""
    return Path(platformdirs.user_data_dir("agent-sidecar", appauthor=False)) / "sign-ins.json"


def store_path() -> Path:
    """Where sessions are kept unless the options say otherwise."""
    return Path(platformdirs.user_data_dir("agent-sidecar", appauthor=False)) / "store.sqlite3"


def trust_path() -> Path:
    """Where it is kept which workspaces the user trusts."""
    return Path(platformdirs.user_data_dir("agent-sidecar", appauthor=False)) / FILE_NAME


def serve_flags(arguments: Sequence[str]) -> Launch:
    """The flags of `agent-sidecar serve`. Ends the process with status 2 when they are wrong."""
    parser = _Flags(
        prog="agent-sidecar serve", description="serve one host on stdin and stdout", allow_abbrev=False
    )
    parser.add_argument("--model", help="the model of a submit that names none, as provider/model")
    parser.add_argument("--config", type=Path, help="a configuration file in place of the user's own")
    parser.add_argument("--cwd", type=_folder, help="the workspace of a host that names no folders")
    parser.add_argument(
        "--tools",
        action="append",
        default=[],
        type=_tools_entry,
        metavar="FILE.py",
        help="tools of your own, also as module:name or entry-point:NAME; may be repeated",
    )
    parser.add_argument("--log-file", type=_log_file, help="write the log there in place of stderr")
    parser.add_argument("--log-level", default="warning", choices=LEVELS)
    flags = parser.parse_args(arguments)
    return Launch(
        model=flags.model,
        config_file=flags.config,
        cwd=flags.cwd,
        log_file=flags.log_file,
        log_level=flags.log_level,
        tools=tuple(flags.tools),
    )


class _Flags(argparse.ArgumentParser):
    """Complains in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"agent-sidecar: error: {message}; see `{self.prog} --help`\n")


def _folder(text: str) -> Path:
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is no folder")
    return Path(text)


def _log_file(text: str) -> Path:
    try:
        with Path(text).open("a"):
            return Path(text)
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{text!r} cannot be written: {error.strerror}") from None


def _tools_entry(text: str) -> str:
    if fault := fault_of_entry(text):
        raise argparse.ArgumentTypeError(fault)
    return text


def serve(launch: Launch) -> NoReturn:
    """Serves one host on stdin and stdout until it leaves, then ends the process."""
    # Taken first: whatever prints from here on reaches stderr at most, and cannot hold us up there.
    streams = take_standard_streams()
    secrets = Secrets(secret_variables(os.environ))
    configure_logging(launch.log_file, launch.log_level, secrets)
    app = _App(launch, os.environ)
    server = SidecarServer(HANDLERS, app.open, app.close, listeners=LISTENERS, secrets=secrets)
    serve_stdio(server, streams)


class _Settings(NamedTuple):
    """What is set: all that is in force together, by whom, and what the workspace brought along."""

    options: Options
    sources: tuple[JsonObject, JsonObject, JsonObject]
    folders: Folders
    brought: Brought
    trusted: TrustBook

    @property
    def said(self) -> JsonObject:
        """What the host has said."""
        return self.sources[0]

    def once_trusted(self) -> Options:
        """The options with what the workspace brought along among them."""
        said, flags, user = self.sources
        return read_options(layered(said, flags, self.brought.options, user), path="")


class _App:
    """Opens the services for a host that has introduced itself, and closes them."""

    def __init__(self, launch: Launch, environ: Mapping[str, str]) -> None:
        self._launch = launch
        self._environ = environ
        self._trust: WorkspaceTrust | None = None

    async def open(self, init: Initialization, host: Host) -> Opened:
        """Everything a host needs. Raises DecodeError and ConfigurationError."""
        settings = self._settings(init)
        options, folders = settings.options, settings.folders
        host.secrets.add(secret_settings(options, self._environ))
        notices = Notices(host.log_message)
        place = store_place(options.store, store_path())
        store = Store(
            place,
            on_warning=lambda warning: notices.add(warning.code, warning.message),
            secrets=host.secrets,
        )
        questions = Questions(host, deadline_secs=approval_timeout_secs(options))
        registry = await _registry(options, host)
        sessions = Sessions(
            store, on_change=lambda change: host.notify("session/changed", change), on_run_end=host.end_run
        )
        host.keep_events(sessions.keep)
        inputs = {wanted.id: wanted for wanted in options.inputs or ()}
        lending = Lending(host)
        chosen = options.model or default_model(self._environ)
        models = Models(options.providers or {}, default=chosen, complete=lending.complete)
        permissions = PermissionBook(permission_config(options), kept=store.permissions(lambda: folders.paths))
        pins = store.pinned_tools(lambda: folders.paths)
        servers = McpManager(
            workspace=folders.paths,
            on_status=lambda server: host.notify("mcp/statusChanged", server),
            on_tools=_tool_keeper(registry, notices, partial(_heed_changes, pins, permissions, notices)),
            on_warning=lambda server, warning: notices.add("mcpServer", f"MCP server {server!r}: {warning}"),
            ask_input=_input_asker(questions, inputs),
            offers=offers_of(host, questions, partial(sample, models), folders),
            check=check_permissions,
            verdicts=Verdicts(None if place.file is None else verdicts_path()),
            authorize=_sign_ins(host, questions, options).authorize,
            environ=self._environ,
        )
        folders.on_change(servers.roots_changed)
        for name, raw in (options.mcp_servers or {}).items():
            servers.start(name, raw)
        services = Services(
            host=host,
            questions=questions,
            store=store,
            sessions=sessions,
            registry=registry,
            permissions=permissions,
            servers=servers,
            models=models,
            lending=lending,
            notices=notices,
            folders=folders,
            watched=WatchedFiles(host, folders, FILES, self._look_again),
            documents=EditorDocuments(host),
            defaults=SubmitDefaults(cycle_config(options.cycle), options.system, server_wait_secs(options)),
        )
        self._ask_for_trust(settings, services, inputs)
        named = (models.default,) if models.default else ()
        return Opened(services=services, models=named, max_frame_bytes=options.max_frame_bytes)

    async def close(self, services: Services) -> None:
        """Cancels what runs, ends every child process, lets go of connections."""
        if self._trust is not None:
            await self._trust.aclose()
        await asyncio.gather(
            services.sessions.aclose(),
            services.servers.aclose(),
            services.models.aclose(),
            services.registry.aclose(),
        )
        services.store.close()

    def _settings(self, init: Initialization) -> _Settings:
        """What is set, by whom, once it is known where we are. Raises DecodeError and ConfigurationError."""
        said, flags, user = sources = self._sources(init.options)
        options = read_options(layered(said, flags, user), path="")
        folders = self._folders(options, init)
        trusted = TrustBook(trust_path())
        brought = brought_by(folders.paths, trusted, wish=options.trust_workspace)
        settings = _Settings(options, sources, folders, brought, trusted)
        return settings._replace(options=settings.once_trusted()) if brought.standing == "trusted" else settings

    def _ask_for_trust(self, settings: _Settings, services: Services, inputs: dict[str, InputDefinition]) -> None:
        def use(brought: Brought, before: JsonObject) -> None:
            options = settings._replace(brought=brought).once_trusted()
            use_now(brought, before, options, settings.said, services, inputs)

        self._trust = WorkspaceTrust(
            settings.brought,
            settings.trusted,
            services.host,
            services.notices,
            wish=settings.options.trust_workspace,
            deadline_secs=approval_timeout_secs(settings.options),
            use=use,
        )
        self._trust.start()

    def _look_again(self) -> None:
        if self._trust is not None:
            self._trust.look_again()

    def _sources(self, initialization: Any) -> tuple[JsonObject, JsonObject, JsonObject]:
        """What the host says, what the flags say, and what the user's file says: the strongest first."""
        said = {} if initialization in (None, []) else initialization  # Lua writes an empty object as `[]`.
        read_options(said, path="params.initializationOptions")
        file = self._launch.config_file or config_path()
        user = read_user_file(file, required=self._launch.config_file is not None)
        flags = {"model": self._launch.model, "tools": list(self._launch.tools)}
        return said, flags, user

    def _folders(self, options: Options, init: Initialization) -> Folders:
        if options.workspace_folders is not None:
            paths = (folder_path(folder.uri) for folder in options.workspace_folders)
            return Folders(tuple(path for path in paths if path is not None), are_given=True)
        if init.workspace_folders or self._launch.cwd is None:
            return Folders(init.workspace_folders)
        return Folders((self._launch.cwd.resolve(),))


async def _registry(options: Options, host: Host) -> ToolRegistry:
    """The built-in tools that are wanted and the user's own; the host hears of every later change."""
    registry = ToolRegistry()
    wanted = options.builtin_tools
    names = set(BUILTIN) if wanted is None or wanted is True else set(wanted or ())
    for name in BUILTIN:
        if name in names:
            registry.register(BUILTIN[name](), source=ToolSource(type="builtin"))
    await add_tools(registry, options.tools or ())
    registry.subscribe(lambda change: host.notify("tools/changed", change))
    return registry


def _heed_changes(
    pins: PinnedTools,
    permissions: PermissionBook,
    notices: Notices,
    server: str,
    definitions: Sequence[McpToolDefinition],
) -> None:
    """What people have allowed of a tool holds for the tool that they saw, not for what a server makes of it."""
    names = {definition.name: registered_name(server, definition.name) for definition in definitions}
    try:
        for name in pins.changed(server, {each.name: digest_of(each) for each in definitions}):
            permissions.forget_tool(names[name])
            message = f"tool {name!r} of MCP server {server!r} has changed since it was last seen"
            notices.add("toolChanged", f"{message}; what was allowed of it is asked about again")
    except StoreError as error:
        cannot = f"whether tools of MCP server {server!r} have changed cannot be told"
        notices.add("mcpTool", f"{cannot}: {error.message}")


def _tool_keeper(
    registry: ToolRegistry, notices: Notices, heed: Callable[[str, Sequence[McpToolDefinition]], None]
) -> OnTools:
    """Keeps a server's tools in the registry as they come, change and go with it."""

    def on_tools(server: str, client: Client | None, definitions: tuple[McpToolDefinition, ...]) -> None:
        if client is not None:
            heed(server, definitions)
        permissions = client.server.permissions if client is not None else {}
        ours = RESOURCE_TOOLS if client is not None and offers(client, "resources") else ()
        for warning in sync_server_tools(registry, server, client, definitions, permissions, ours=ours):
            notices.add("mcpTool", warning)

    return on_tools


def _sign_ins(host: Host, questions: Questions, options: Options) -> SignIns:
    """Lets the person at the host sign in to servers; they have as long for it as for an approval."""
    limit_secs = approval_timeout_secs(options)
    return SignIns(sign_ins_path(), SignInPage(host, questions).show, limit_secs=limit_secs)


def _input_asker(
    questions: Questions, inputs: Mapping[str, InputDefinition]
) -> Callable[[str], Awaitable[str | None]]:
    """Asks a person for the `${input:id}` of a server's entry, in the words of `inputs` where it is there."""

    async def ask_input(input_id: str) -> str | None:
        wanted = inputs.get(input_id) or InputDefinition(id=input_id)
        given = await questions.ask_input(
            source="mcpServers",
            message=wanted.description or f"value for ${{input:{input_id}}}",
            schema={"type": "object", "properties": {"value": wanted.schema}, "required": ["value"]},
        )
        return None if given is None else str(given["value"])

    return ask_input
