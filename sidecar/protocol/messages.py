"""The parameters and results of every method, in the order of `protocol.md`.

`*Params` come in with a request or notification, `*Result` go back. Fields that are None are absent on the
wire. Times end in `_ms` (milliseconds since the epoch, or a span where said) or `_secs`.
"""

from typing import Any, Literal

from attrs import frozen

from sidecar.protocol.errors import ErrorAction
from sidecar.protocol.events import AgentEvent, ApprovalDecision, DecidedBy, StopReason
from sidecar.protocol.value import Value
from sidecar.protocol.values import (
    Content,
    ContentBlock,
    JsonObject,
    LogLevel,
    Message,
    ToolDefinition,
    ToolInfo,
    ToolSelector,
    Usage,
)


@frozen(kw_only=True, repr=False, eq=False)
class NoParams(Value):
    """A method that takes nothing; `params` may be absent, `{}` or `[]`."""


# agent/* ------------------------------------------------------------------------------------------------


@frozen(kw_only=True, repr=False, eq=False)
class SubmitParams(Value):
    """One run. Exactly one of `prompt` and `messages`; everything else overrides the options for this run."""

    prompt: Content | None = None
    messages: tuple[Message, ...] | None = None
    session_id: str | None = None
    run_id: str | None = None
    model: str | None = None
    system: str | None = None
    tools: ToolSelector | None = None
    max_turns: int | None = None
    tool_timeout_secs: float | None = None
    error_policy: dict[str, ErrorAction] | None = None
    temperature: float | None = None
    max_output_tokens: int | None = None
    wait: bool | None = None
    queue: bool | None = None
    work_done_token: str | int | None = None


@frozen(kw_only=True, repr=False, eq=False)
class SubmitResult(Value):
    """With `wait: false` only the two ids."""

    session_id: str
    run_id: str
    stop_reason: StopReason | None = None
    message: Message | None = None
    turns: int | None = None
    usage: Usage | None = None


@frozen(kw_only=True, repr=False, eq=False)
class CancelParams(Value):
    """A run by either id; both are allowed."""

    session_id: str | None = None
    run_id: str | None = None


@frozen(kw_only=True, repr=False, eq=False)
class CancelResult(Value):
    """Whether something that ran was cancelled."""

    cancelled: bool


@frozen(kw_only=True, repr=False, eq=False)
class SteerParams(Value):
    """Words for a running run, read by the model before its next turn."""

    run_id: str
    prompt: Content


@frozen(kw_only=True, repr=False, eq=False)
class SteerResult(Value):
    """False when the run is over or on its last turn, so that nothing was said."""

    accepted: bool


# session/* ----------------------------------------------------------------------------------------------

RunStatus = Literal["running", "completed", "failed", "cancelled"]


@frozen(kw_only=True, repr=False, eq=False)
class SessionCreateParams(Value):
    """`title` is for people."""

    title: str | None = None


@frozen(kw_only=True, repr=False, eq=False)
class SessionParams(Value):
    """One session, by its id."""

    session_id: str


@frozen(kw_only=True, repr=False, eq=False)
class SessionIdResult(Value):
    """The session that was made."""

    session_id: str


@frozen(kw_only=True, repr=False, eq=False)
class PageParams(Value):
    """One page: `cursor` from the page before, at most `limit` entries (default 50, at most 1000)."""

    cursor: str | None = None
    limit: int | None = None


@frozen(kw_only=True, repr=False, eq=False)
class SessionSummary(Value):
    """A line of a list of sessions."""

    session_id: str
    title: str | None = None
    created_ms: int
    updated_ms: int
    message_count: int


@frozen(kw_only=True, repr=False, eq=False)
class SessionListResult(Value):
    """Sessions, the last touched first."""

    sessions: tuple[SessionSummary, ...]
    next_cursor: str | None = None


@frozen(kw_only=True, repr=False, eq=False)
class RunSummary(Value):
    """A run of a session and how it ended."""

    run_id: str
    status: RunStatus
    stop_reason: StopReason | None = None


@frozen(kw_only=True, repr=False, eq=False)
class SessionGetResult(Value):
    """A session, whole."""

    session_id: str
    title: str | None = None
    messages: tuple[Message, ...]
    runs: tuple[RunSummary, ...]


@frozen(kw_only=True, repr=False, eq=False)
class SessionEventsParams(Value):
    """The events of one run, or of all; only those after `after_seq` of that run."""

    session_id: str
    run_id: str | None = None
    after_seq: int | None = None


@frozen(kw_only=True, repr=False, eq=False)
class SessionEventsResult(Value):
    """The events as they were sent."""

    events: tuple["AgentEventParams", ...]


@frozen(kw_only=True, repr=False, eq=False)
class SessionForkParams(Value):
    """A new session with the first `at_message` messages of an old one (absent: all)."""

    session_id: str
    at_message: int | None = None


@frozen(kw_only=True, repr=False, eq=False)
class SessionCompactResult(Value):
    """About how many tokens the history was before and is now; equal when nothing could be left out."""

    before_tokens: int
    after_tokens: int


ExportFormat = Literal["json", "markdown", "replay"]


@frozen(kw_only=True, repr=False, eq=False)
class SessionExportParams(Value):
    """A session as a document. `"replay"` is a script that the provider `replay` plays."""

    session_id: str
    format: ExportFormat


@frozen(kw_only=True, repr=False, eq=False)
class SessionExportResult(Value):
    """The document, to be written into a file as it is."""

    format: ExportFormat
    text: str


@frozen(kw_only=True, repr=False, eq=False)
class SessionDeleteResult(Value):
    """False when there was no such session."""

    deleted: bool


# tools/* ------------------------------------------------------------------------------------------------


@frozen(kw_only=True, repr=False, eq=False)
class ToolsListParams(Value):
    """Tools that `selector` takes, all of them without one."""

    selector: ToolSelector | None = None
    cursor: str | None = None
    limit: int | None = None


@frozen(kw_only=True, repr=False, eq=False)
class ToolsListResult(Value):
    """Tools by name."""

    tools: tuple[ToolInfo, ...]
    next_cursor: str | None = None


@frozen(kw_only=True, repr=False, eq=False)
class ToolsCallParams(Value):
    """One tool, run for the host: same checks, same approvals as in the loop."""

    name: str
    arguments: JsonObject | None = None
    session_id: str | None = None
    call_id: str | None = None
    timeout_secs: float | None = None
    work_done_token: str | int | None = None


@frozen(kw_only=True, repr=False, eq=False)
class ToolOutcome(Value):
    """What the tool answered, without its blocks."""

    ok: bool
    data: Any = None
    error: str | None = None


@frozen(kw_only=True, repr=False, eq=False)
class ToolsCallResult(Value):
    """The record of the call. `content` is what a model would be shown."""

    call_id: str
    tool_name: str
    input: JsonObject
    result: ToolOutcome
    content: tuple[ContentBlock, ...]
    duration_ms: int
    truncated: bool
    original_bytes: int | None = None


@frozen(kw_only=True, repr=False, eq=False)
class HostTool(Value):
    """A tool that the host runs. Without `required_permissions` it needs none."""

    name: str
    description: str
    input_schema: JsonObject
    required_permissions: tuple[str, ...] | None = None
    requires_approval: bool | None = None
    tags: tuple[str, ...] | None = None
    category: str | None = None
    timeout_secs: float | None = None


@frozen(kw_only=True, repr=False, eq=False)
class ToolsRegisterParams(Value):
    """Tools of the host. A name that is taken is an error, and then none of them is registered."""

    tools: tuple[HostTool, ...]


@frozen(kw_only=True, repr=False, eq=False)
class ToolsRegisterResult(Value):
    """The names that joined."""

    registered: tuple[str, ...]


@frozen(kw_only=True, repr=False, eq=False)
class ToolsUnregisterParams(Value):
    """Names of tools that the host registered; others are passed over."""

    names: tuple[str, ...]


@frozen(kw_only=True, repr=False, eq=False)
class ToolsUnregisterResult(Value):
    """The names that left."""

    unregistered: tuple[str, ...]


@frozen(kw_only=True, repr=False, eq=False)
class ToolsExecuteParams(Value):
    """To the host: run one of its tools. Progress comes back as `$/progress` with `call_id` as token."""

    call_id: str
    name: str
    arguments: JsonObject
    session_id: str | None = None
    run_id: str | None = None


@frozen(kw_only=True, repr=False, eq=False)
class ToolsExecuteResult(Value):
    """What the host's tool answered."""

    ok: bool
    data: Any = None
    error: str | None = None
    content: tuple[ContentBlock, ...] | None = None


@frozen(kw_only=True, repr=False, eq=False)
class ToolsChangedParams(Value):
    """The registry changed, by names."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]


# permissions/* ------------------------------------------------------------------------------------------

RuleDecision = Literal["allow", "ask", "deny"]


@frozen(kw_only=True, repr=False, eq=False)
class PermissionRule(Value):
    """A decision for the calls of one tool.

    `tool` is a glob over tool names. `arguments` maps an argument's name to a glob over its text; every one
    named must match. Without `arguments` the rule takes any call.
    """

    tool: str
    decision: RuleDecision
    arguments: dict[str, str] | None = None


@frozen(kw_only=True, repr=False, eq=False)
class PermissionOptions(Value):
    """Permissions as a host or a file writes them; a field left out keeps what was there before."""

    allowed: tuple[str, ...] | None = None
    denied: tuple[str, ...] | None = None
    ask: tuple[str, ...] | None = None
    allow_unspecified: bool | None = None
    rules: tuple[PermissionRule, ...] | None = None


@frozen(kw_only=True, repr=False, eq=False)
class PermissionsGetParams(Value):
    """With `session_id`, what is in force in that session."""

    session_id: str | None = None


@frozen(kw_only=True, repr=False, eq=False)
class PermissionsSetParams(Value):
    """The new values; `scope: "session"` needs `session_id`."""

    scope: Literal["session", "workspace"]
    session_id: str | None = None
    allowed: tuple[str, ...] | None = None
    denied: tuple[str, ...] | None = None
    ask: tuple[str, ...] | None = None
    allow_unspecified: bool | None = None
    rules: tuple[PermissionRule, ...] | None = None


@frozen(kw_only=True, repr=False, eq=False)
class PermissionsResult(Value):
    """The configuration in force, every field present."""

    allowed: tuple[str, ...]
    denied: tuple[str, ...]
    ask: tuple[str, ...]
    allow_unspecified: bool
    rules: tuple[PermissionRule, ...]


@frozen(kw_only=True, repr=False, eq=False)
class PermissionsCheckParams(Value):
    """What would be decided for this call."""

    name: str
    arguments: JsonObject | None = None
    session_id: str | None = None


@frozen(kw_only=True, repr=False, eq=False)
class PermissionsCheckResult(Value):
    """`rule` says which rule decides, in words that name it; `permission` is the one it decided on."""

    decision: RuleDecision
    rule: str
    permission: str | None = None


# audit/* ------------------------------------------------------------------------------------------------

CallOutcome = Literal["ok", "failed", "denied", "cancelled", "interrupted"]


@frozen(kw_only=True, repr=False, eq=False)
class AuditListParams(Value):
    """Entries that match every field given, in pages as in PageParams."""

    session_id: str | None = None
    run_id: str | None = None
    tool_name: str | None = None
    decision: RuleDecision | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    cursor: str | None = None
    limit: int | None = None


@frozen(kw_only=True, repr=False, eq=False)
class AuditEntry(Value):
    """A call of a tool: what was decided about it, and what came of it."""

    time_ms: int
    session_id: str | None = None
    run_id: str | None = None
    call_id: str
    tool_name: str
    input_digest: str
    decision: RuleDecision | None = None
    permission: str | None = None
    rule: str | None = None
    decided_by: DecidedBy | None = None
    answer: ApprovalDecision | None = None
    outcome: CallOutcome | None = None
    error_kind: str | None = None
    duration_ms: int | None = None


@frozen(kw_only=True, repr=False, eq=False)
class AuditListResult(Value):
    """Entries, the newest first."""

    entries: tuple[AuditEntry, ...]
    next_cursor: str | None = None


# mcp/* --------------------------------------------------------------------------------------------------

ServerStatus = Literal["starting", "ready", "failed", "stopped", "needsAuth"]


@frozen(kw_only=True, repr=False, eq=False)
class ServerFailure(Value):
    """Why a server is not ready, and the last lines it wrote to stderr."""

    kind: str
    message: str
    stderr_tail: str | None = None


@frozen(kw_only=True, repr=False, eq=False)
class ServerInfo(Value):
    """One MCP server. `server_info` is what it says of itself, for display only."""

    name: str
    status: ServerStatus
    protocol_version: str | None = None
    server_info: JsonObject | None = None
    offers: tuple[str, ...] | None = None
    tool_count: int = 0
    error: ServerFailure | None = None
    pid: int | None = None


@frozen(kw_only=True, repr=False, eq=False)
class McpListResult(Value):
    """Servers by name."""

    servers: tuple[ServerInfo, ...]


@frozen(kw_only=True, repr=False, eq=False)
class McpConnectParams(Value):
    """A server's configuration in the `mcpServers` shape; answers when it is ready or has failed."""

    name: str
    config: JsonObject


@frozen(kw_only=True, repr=False, eq=False)
class McpServerParams(Value):
    """One server, by its configured name."""

    name: str


@frozen(kw_only=True, repr=False, eq=False)
class McpOfferParams(Value):
    """A list that a server offers."""

    server: str


@frozen(kw_only=True, repr=False, eq=False)
class McpResourcesResult(Value):
    """`Resource` objects of MCP, as they came."""

    resources: tuple[JsonObject, ...]


@frozen(kw_only=True, repr=False, eq=False)
class McpResourceTemplatesResult(Value):
    """`ResourceTemplate` objects of MCP, as they came."""

    resource_templates: tuple[JsonObject, ...]


@frozen(kw_only=True, repr=False, eq=False)
class McpReadResourceParams(Value):
    """One resource of a server."""

    server: str
    uri: str


@frozen(kw_only=True, repr=False, eq=False)
class McpReadResourceResult(Value):
    """`TextResourceContents` and `BlobResourceContents` of MCP, as they came."""

    contents: tuple[JsonObject, ...]


@frozen(kw_only=True, repr=False, eq=False)
class McpWatchResourcesParams(Value):
    """The resources of a server that the host wants to hear of, in place of those before."""

    server: str
    uris: tuple[str, ...]


@frozen(kw_only=True, repr=False, eq=False)
class McpPromptsResult(Value):
    """`Prompt` objects of MCP, as they came."""

    prompts: tuple[JsonObject, ...]


@frozen(kw_only=True, repr=False, eq=False)
class McpGetPromptParams(Value):
    """One prompt of a server, and what fills it in."""

    server: str
    name: str
    arguments: dict[str, str] | None = None


@frozen(kw_only=True, repr=False, eq=False)
class McpGetPromptResult(Value):
    """`PromptMessage` objects of MCP, as they came."""

    description: str | None = None
    messages: tuple[JsonObject, ...]


@frozen(kw_only=True, repr=False, eq=False)
class McpCompleteParams(Value):
    """What is being filled in: `ref`, `argument` and `context` as in MCP's `completion/complete`."""

    server: str
    ref: JsonObject
    argument: JsonObject
    context: JsonObject | None = None


@frozen(kw_only=True, repr=False, eq=False)
class McpCompleteResult(Value):
    """`{values, total?, hasMore?}`."""

    completion: JsonObject


@frozen(kw_only=True, repr=False, eq=False)
class McpSetLogLevelParams(Value):
    """From which level on a server is to write into the log; kept when it is restarted."""

    server: str
    level: LogLevel


# models/* -----------------------------------------------------------------------------------------------


@frozen(kw_only=True, repr=False, eq=False)
class ModelInfo(Value):
    """`model` is what `agent/submit` takes: `provider/model`."""

    model: str
    provider: str
    context_tokens: int | None = None


@frozen(kw_only=True, repr=False, eq=False)
class ModelsListResult(Value):
    """Models of the configured providers; one that cannot be reached adds none."""

    models: tuple[ModelInfo, ...]
    next_cursor: str | None = None


# To the host --------------------------------------------------------------------------------------------


@frozen(kw_only=True, repr=False, eq=False)
class ApprovalOption(Value):
    """A choice to show. `rule` is exactly what will be remembered when it is taken."""

    decision: ApprovalDecision
    label: str
    rule: PermissionRule | None = None


@frozen(kw_only=True, repr=False, eq=False)
class RequestApprovalParams(Value):
    """May this call run? No answer by `deadline_ms` (a span from now) means no."""

    request_id: str
    session_id: str | None = None
    run_id: str | None = None
    call_id: str
    tool_name: str
    input: JsonObject
    permissions: tuple[str, ...]
    reason: str
    title: str
    options: tuple[ApprovalOption, ...]
    diff: str | None = None
    deadline_ms: int


@frozen(kw_only=True, repr=False, eq=False)
class RequestApprovalResult(Value):
    """The host's word. `updated_input` replaces the arguments, which are then checked again."""

    decision: ApprovalDecision
    rule: PermissionRule | None = None
    reason: str | None = None
    updated_input: JsonObject | None = None


@frozen(kw_only=True, repr=False, eq=False)
class RequestInputParams(Value):
    """A question to a person, on behalf of `source`; `schema` says what `content` must be."""

    request_id: str
    session_id: str | None = None
    run_id: str | None = None
    message: str
    schema: JsonObject | None = None
    url: str | None = None
    source: str
    deadline_ms: int


@frozen(kw_only=True, repr=False, eq=False)
class RequestInputResult(Value):
    """Only `accept` brings content."""

    action: Literal["accept", "decline", "cancel"]
    content: Any = None


@frozen(kw_only=True, repr=False, eq=False)
class ModelCompleteParams(Value):
    """One answer of a model of the host's. `messages` is the whole conversation, `tools` what may be called.

    `idle_timeout_ms` is how long the sidecar waits for a word, of the answer or of its text before it.
    """

    request_id: str
    model: str | None = None
    system: str | None = None
    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...]
    temperature: float | None = None
    max_output_tokens: int | None = None
    idle_timeout_ms: int


@frozen(kw_only=True, repr=False, eq=False)
class ModelCompleteResult(Value):
    """The answer, whole, also where its text came before. Without `finish_reason` its calls say why it ended."""

    message: Message
    finish_reason: str | None = None
    usage: Usage | None = None


@frozen(kw_only=True, repr=False, eq=False)
class ModelDeltaParams(Value):
    """More of the text of an answer that the host is still working on."""

    request_id: str
    text: str


# Notifications to the host ------------------------------------------------------------------------------


@frozen(kw_only=True, repr=False, eq=False)
class AgentEventParams(Value):
    """An event and its number; `seq` counts from 0 in its run, without a gap."""

    session_id: str
    run_id: str
    seq: int
    event: AgentEvent


@frozen(kw_only=True, repr=False, eq=False)
class InputDoneParams(Value):
    """What a person was asked to do at a `url` is done, the server says."""

    request_id: str


@frozen(kw_only=True, repr=False, eq=False)
class McpOffersChangedParams(Value):
    """A server's list of `resources` or `prompts` changed, or the `resource` at `uri`."""

    server: str
    what: Literal["resources", "prompts", "resource"]
    uri: str | None = None


@frozen(kw_only=True, repr=False, eq=False)
class SessionChangedParams(Value):
    """A session came, went, or has more messages."""

    session_id: str
    change: Literal["created", "updated", "deleted"]
    title: str | None = None
    updated_ms: int | None = None
    message_count: int | None = None
