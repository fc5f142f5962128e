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
from sidecar.store.store import Store
from sidecar.tools.base import ToolContext
from sidecar.tools.registry import ToolRegistry


@frozen(kw_only=True)
class Services:
    """The parts of a running sidecar. `cycle` and `system` are the defaults of a submit.

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
    documents: EditorDocuments
    cycle: CycleConfig
    system: str | None
    server_wait_secs: float
    host_calls: dict[str, ToolContext] = field(factory=dict)

    @property
    def workspace(self) -> tuple[Path, ...]:
        """The folders that tools may use now."""
        return self.folders.paths
