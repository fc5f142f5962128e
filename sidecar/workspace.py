"""A workspace's own configuration: whether it is trusted, what of it counts, and how a person is asked about it.

Until a person, or the host in their place, has trusted exactly this content, nothing of it is used: no process
is started, no rule added, nothing sent anywhere.
"""

import asyncio
import shlex
from collections.abc import Callable, Collection, Iterator, MutableMapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from sidecar.config import Options, cycle_config, permission_config, read_options, server_wait_secs
from sidecar.config_files.server_files import InputDefinition
from sidecar.config_files.shown import shown_files
from sidecar.config_files.trust import Decision, Standing, TrustBook
from sidecar.config_files.workspace import WorkspaceFile, WorkspaceFiles, read_workspace
from sidecar.protocol.codec import DecodeError, camel, encode
from sidecar.protocol.messages import PermissionOptions
from sidecar.protocol.printable import printable
from sidecar.protocol.values import JsonObject
from sidecar.server.choice import ask_choice, can_choose
from sidecar.server.host import Host
from sidecar.server.notices import Notices
from sidecar.server.services import Services

CHOICES = {"trust": "Trust", "notNow": "Not now", "never": "Never"}
"""The answers of the question, in words for buttons."""

USED_LATER = ("builtinTools",)
"""What takes effect from the next start on, where it is trusted while we run."""


class Brought(NamedTuple):
    """What a workspace brings along. `options` are in their shape; `warnings` say what of it is passed over."""

    found: WorkspaceFiles
    standing: Standing | Literal["nothing"]
    options: JsonObject
    warnings: tuple[str, ...] = ()

    @property
    def file_names(self) -> str:
        """For people."""
        return ", ".join(file.name for file in self.found.files)


NOTHING = Brought(found=WorkspaceFiles(folder=Path()), standing="nothing", options={})


def brought_by(workspace: tuple[Path, ...], book: TrustBook, *, wish: bool | None) -> Brought:
    """What the first folder brings along. `wish` is the host's word on it: to trust it, or to pass it over."""
    if not workspace or wish is False:
        return NOTHING
    found = read_workspace(workspace[0])
    options, warnings = _options_of(found.files)
    standing: Standing | Literal["nothing"] = "nothing"
    if found.says_something:
        standing = "trusted" if wish else book.standing(found.folder, found.digests)
    told = (*found.refused, *(warning for file in found.files for warning in file.warnings), *warnings)
    if book.fault and standing in ("unknown", "changed"):
        told = (*told, f"{book.path}: {book.fault}; nothing that it says is believed")
    return Brought(
        found=found, standing=standing, options=options, warnings=tuple(printable(words) for words in told)
    )


class WorkspaceTrust:
    """Asks the person at the host, where there is something to ask, and puts to use what is trusted.

    `use` is called with what is trusted while we run, and the options that were in use before. Nothing waits for
    the answer. `wish` is the host's word, as for `brought_by`: where there is one, it was on what there was.
    """

    def __init__(
        self,
        brought: Brought,
        book: TrustBook,
        host: Host,
        notices: Notices,
        *,
        wish: bool | None,
        deadline_secs: float,
        use: Callable[[Brought, JsonObject], None],
    ) -> None:
        self._brought = brought
        self._used = brought.options if brought.standing == "trusted" else {}
        self._book = book
        self._host = host
        self._notices = notices
        self._wish = wish
        self._deadline_secs = deadline_secs
        self._use = use
        self._asking: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Says what was passed over, and asks in the background. The host hears of it after `initialize`."""
        for warning in self._brought.warnings:
            self._notices.add("workspaceConfiguration", f"the workspace's configuration: {warning}")
        match self._brought.standing:
            case "unknown" | "changed" if can_choose(self._host):
                self._asking = asyncio.create_task(self._ask(self._brought, self._asking))
            case "unknown" | "changed":
                self._notices.add("workspaceNotTrusted", self._not_used("nobody could be asked about it"))
            case "never":
                self._host.log_message(self._not_used("you said never to"))

    def look_again(self) -> None:
        """The files may have changed: an open question is asked anew about what they are now.

        What was trusted before stays in use until what has taken its place is trusted.
        """
        before = self._brought.found
        if before.folder == Path():
            return
        now = brought_by((before.folder,), self._book, wish=None)
        if now.found.digests == before.digests:
            return
        self._brought = now
        if self._asking is not None:
            self._asking.cancel()
        if now.standing == "trusted":
            self._use_now(now)
        elif self._wish is not None:
            reason = "the workspace's configuration has changed; what it is now counts from the next start"
            self._notices.add("workspaceConfiguration", reason)
        else:
            self.start()

    async def aclose(self) -> None:
        """Withdraws the question, if it is still open."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait({self._asking})

    async def _ask(self, brought: Brought, earlier: "asyncio.Task[None] | None") -> None:
        if earlier is not None:
            await asyncio.wait({earlier})  # One question at a time, also where one is being withdrawn.
        answer = await ask_choice(
            self._host,
            source="workspace",
            message=question_about(brought),
            choices=CHOICES,
            deadline_secs=self._deadline_secs,
        )
        match answer:
            case "trust":
                self._keep("trust", brought)
                self._use_now(brought)
            case "notNow" | "never":
                self._keep(answer, brought)
                self._host.log_message(self._not_used("it is not trusted"))
            case _:
                self._notices.add("workspaceNotTrusted", self._not_used("nobody answered the question about it"))

    def _use_now(self, brought: Brought) -> None:
        self._use(brought, self._used)
        self._used = brought.options
        self._host.log_message(f"the workspace's configuration ({brought.file_names}) is trusted and used")
        for name in USED_LATER:
            if name in brought.options:
                reason = f"the workspace's configuration: its {name} count from the next start"
                self._notices.add("workspaceConfiguration", reason)

    def _keep(self, decision: Decision, brought: Brought) -> None:
        found = brought.found
        try:
            self._book.record(found.folder, decision, found.digests)
        except OSError as error:
            reason = f"the answer cannot be kept in {self._book.path}: {error.strerror}"
            self._notices.add(
                "workspaceConfiguration", f"the workspace's configuration: {reason}; it is asked again"
            )

    def _not_used(self, reason: str) -> str:
        """How to trust it, for whoever was not asked, or thinks again."""
        folder = shlex.quote(printable(str(self._brought.found.folder)))
        return (
            f"the workspace's configuration ({self._brought.file_names}) is not used, because {reason}; "
            f"to trust it: agent-sidecar trust {folder}"
        )


def use_now(
    brought: Brought,
    before: JsonObject,
    options: Options,
    said: JsonObject,
    services: Services,
    inputs: MutableMapping[str, InputDefinition],
) -> None:
    """Puts to use what has just been trusted, as far as the host has not `said` otherwise.

    `options` are all options with what was brought among them, `before` what of the workspace was in use until
    now. `inputs` by id is what questions for inputs go by.
    """
    defaults = services.defaults
    defaults.cycle, defaults.system = cycle_config(options.cycle), options.system
    defaults.server_wait_secs = server_wait_secs(options)
    services.models.default = options.model or services.models.default
    inputs.update({wanted.id: wanted for wanted in options.inputs or ()})
    own_fields = {*before.get("permissions", {}), *brought.options.get("permissions", {})}
    _permit(services, options, own_fields - {*(said.get("permissions") or {})})
    _start_servers(brought, before, options, said, services)


def _start_servers(
    brought: Brought, before: JsonObject, options: Options, said: JsonObject, services: Services
) -> None:
    """Starts servers that are new or have another entry, and stops those that are gone."""
    wanted, known = brought.options.get("mcpServers", {}), before.get("mcpServers", {})
    left = options.mcp_servers or {}
    for name in {**known, **wanted}:
        if name in (said.get("mcpServers") or {}) or known.get(name) == wanted.get(name):
            continue
        if name in left:
            folder = brought.found.folder if name in wanted else None
            services.servers.start(name, left[name], folder=folder)
        else:
            services.servers.stop(name)


def _permit(services: Services, options: Options, fields: Collection[str]) -> None:
    """Replaces these fields. Rules that answers have left stay."""
    config = permission_config(options)
    given = {name: getattr(config, name) for name in PERMISSION_FIELDS if camel(name) in fields}
    services.permissions.reconfigure(PermissionOptions(**given))


PERMISSION_FIELDS = ("allowed", "denied", "ask", "allow_unspecified", "rules")


def question_about(brought: Brought) -> str:
    """The question, with every command and address in full."""
    folder = printable(str(brought.found.folder))
    if brought.standing == "changed":
        first = (
            f"The configuration of the workspace {folder} is not what you trusted any more. Trust what it is now?"
        )
    else:
        first = f"The workspace {folder} brings configuration of its own. Trust it?"
    return "\n".join(
        [
            f"{first} Until then nothing of it is used.",
            *shown_files(brought.found),
            "trust: use it, and ask again when one of these files changes. notNow: ask again at the next start. "
            "never: do not ask about this folder any more.",
        ]
    )


def _options_of(files: tuple[WorkspaceFile, ...]) -> tuple[JsonObject, list[str]]:
    """The options of all files together, the strongest of each name."""
    servers: dict[str, Any] = {}
    origin: dict[str, str] = {}
    inputs: dict[str, InputDefinition] = {}
    settings: JsonObject = {}
    warnings: list[str] = []
    for file in files:
        for name, entry in file.servers.items():
            if name not in servers:
                servers[name], origin[name] = entry, file.name
            elif entry != servers[name]:
                warnings.append(f"{file.name}: {name}: the server of that name in {origin[name]} counts")
        inputs = {**{wanted.id: wanted for wanted in file.inputs}, **inputs}
        try:
            read_options(dict(file.settings), path="")
            settings |= file.settings
        except DecodeError as error:
            warnings.append(f"{file.name}: {error}; its settings are not used")
    return dict(_said(servers, list(inputs.values()), settings)), warnings


def _said(servers: JsonObject, inputs: list[InputDefinition], settings: JsonObject) -> Iterator[tuple[str, Any]]:
    if servers:
        yield "mcpServers", servers
    if inputs:
        yield "inputs", encode(inputs)
    yield from settings.items()
