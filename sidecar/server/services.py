"""What the handlers work with: one value, made by `app` when a host has introduced itself."""

from pathlib import Path

from attrs import field, frozen

from sidecar.agent.config import CycleConfig
from sidecar.agent.models import Models
from sidecar.agent.sessions import Sessions
from sidecar.mcp.manager import McpManager
from sidecar.permissions.book import PermissionBook
from sidecar.server.documents import EditorDocuments
from sidecar.server.folders import Folders
from sidecar.server.host import Host
from sidecar.server.lending import Lending
from sidecar.server.notices import Notices
from sidecar.server.questions import Questions
from sidecar.server.watched_files import WatchedFiles
from sidecar.store.store import Store
from sidecar.tools.base import ToolContext
from sidecar.tools.registry import ToolRegistry


class SubmitDefaults:
    """What holds for a submit that says nothing else. Changes when a workspace comes to be trusted."""

    def __init__(self, cycle: CycleConfig, system: str | None, server_wait_secs: float) -> None:
        self.cycle = cycle
        self.system = system
        self.server_wait_secs = server_wait_secs


@frozen(kw_only=True)
class Services:
    """The parts of a running sidecar.

    `host_calls` are the calls that the host runs for us at the moment, by their ids.
    """

    host: Host
    questions: Questions
    store: Store
    sessions: Sessions
    registry: ToolRegistry
    permissions: PermissionBook
    servers: McpManager
    models: Models
    lending: Lending
    notices: Notices
    folders: Folders
    watched: WatchedFiles
    documents: EditorDocuments
    defaults: SubmitDefaults
    host_calls: dict[str, ToolContext] = field(factory=dict)

    @property
    def cycle(self) -> CycleConfig:
        """The limits of a run."""
        return self.defaults.cycle

    @property
    def system(self) -> str | None:
        """The system prompt."""
        return self.defaults.system

    @property
    def server_wait_secs(self) -> float:
        """How long a submit waits for servers that still start."""
        return self.defaults.server_wait_secs

    @property
    def workspace(self) -> tuple[Path, ...]:
        """The folders that tools may use now."""
        return self.folders.paths
