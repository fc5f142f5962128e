"""METHODS: every method of ours, who sends it, and its types. LSP's own methods are pygls' business."""

from typing import Literal

from attrs import frozen

from sidecar.protocol import messages as m

PROTOCOL_VERSION = "1.0"

Sender = Literal["host", "sidecar"]


@frozen
class Method:
    """A row of the table. A notification has no result."""

    name: str
    sender: Sender
    params: type
    result: type | None = None

    @property
    def is_notification(self) -> bool:
        return self.result is None


_ROWS = (
    Method("agent/submit", "host", m.SubmitParams, m.SubmitResult),
    Method("agent/cancel", "host", m.CancelParams, m.CancelResult),
    Method("agent/steer", "host", m.SteerParams, m.SteerResult),
    Method("session/create", "host", m.SessionCreateParams, m.SessionIdResult),
    Method("session/list", "host", m.PageParams, m.SessionListResult),
    Method("session/get", "host", m.SessionParams, m.SessionGetResult),
    Method("session/events", "host", m.SessionEventsParams, m.SessionEventsResult),
    Method("session/fork", "host", m.SessionForkParams, m.SessionIdResult),
    Method("session/compact", "host", m.SessionParams, m.SessionCompactResult),
    Method("session/export", "host", m.SessionExportParams, m.SessionExportResult),
    Method("session/delete", "host", m.SessionParams, m.SessionDeleteResult),
    Method("tools/list", "host", m.ToolsListParams, m.ToolsListResult),
    Method("tools/call", "host", m.ToolsCallParams, m.ToolsCallResult),
    Method("tools/register", "host", m.ToolsRegisterParams, m.ToolsRegisterResult),
    Method("tools/unregister", "host", m.ToolsUnregisterParams, m.ToolsUnregisterResult),
    Method("permissions/get", "host", m.PermissionsGetParams, m.PermissionsResult),
    Method("permissions/set", "host", m.PermissionsSetParams, m.PermissionsResult),
    Method("permissions/check", "host", m.PermissionsCheckParams, m.PermissionsCheckResult),
    Method("audit/list", "host", m.AuditListParams, m.AuditListResult),
    Method("mcp/list", "host", m.NoParams, m.McpListResult),
    Method("mcp/connect", "host", m.McpConnectParams, m.ServerInfo),
    Method("mcp/disconnect", "host", m.McpServerParams, m.ServerInfo),
    Method("mcp/restart", "host", m.McpServerParams, m.ServerInfo),
    Method("mcp/resources", "host", m.McpOfferParams, m.McpResourcesResult),
    Method("mcp/resourceTemplates", "host", m.McpOfferParams, m.McpResourceTemplatesResult),
    Method("mcp/readResource", "host", m.McpReadResourceParams, m.McpReadResourceResult),
    Method("mcp/watchResources", "host", m.McpWatchResourcesParams, m.ServerInfo),
    Method("mcp/prompts", "host", m.McpOfferParams, m.McpPromptsResult),
    Method("mcp/getPrompt", "host", m.McpGetPromptParams, m.McpGetPromptResult),
    Method("mcp/complete", "host", m.McpCompleteParams, m.McpCompleteResult),
    Method("mcp/setLogLevel", "host", m.McpSetLogLevelParams, m.ServerInfo),
    Method("models/list", "host", m.PageParams, m.ModelsListResult),
    Method("model/delta", "host", m.ModelDeltaParams),
    Method("agent/requestApproval", "sidecar", m.RequestApprovalParams, m.RequestApprovalResult),
    Method("agent/requestInput", "sidecar", m.RequestInputParams, m.RequestInputResult),
    Method("tools/execute", "sidecar", m.ToolsExecuteParams, m.ToolsExecuteResult),
    Method("model/complete", "sidecar", m.ModelCompleteParams, m.ModelCompleteResult),
    Method("agent/event", "sidecar", m.AgentEventParams),
    Method("agent/inputDone", "sidecar", m.InputDoneParams),
    Method("tools/changed", "sidecar", m.ToolsChangedParams),
    Method("mcp/statusChanged", "sidecar", m.ServerInfo),
    Method("mcp/offersChanged", "sidecar", m.McpOffersChangedParams),
    Method("session/changed", "sidecar", m.SessionChangedParams),
)

METHODS: dict[str, Method] = {row.name: row for row in _ROWS}
"""Method by name, in the order of `protocol.md`."""
