---@meta
-- Made by `agent-sidecar schema --format lua`; change the types in sidecar/protocol and make it again.

---@alias sidecar.Role "system"|"user"|"assistant"|"tool"

---@alias sidecar.SourceType "builtin"|"python"|"mcp"|"host"

---@alias sidecar.ErrorAction "tellModel"|"stop"

---@alias sidecar.StopReason "stop"|"length"|"contentFilter"|"cancelled"|"error"

---@alias sidecar.RunStatus "running"|"completed"|"failed"|"cancelled"

---@alias sidecar.ErrorKind "notFound"|"executionFailed"|"invalidArguments"|"permissionDenied"|"mcpError"|"mcpNotInitialized"|"mcpTimeout"|"io"|"other"|"timeout"|"modelError"|"modelTimeout"|"contextOverflow"|"maxTurnsExceeded"|"repeatedToolCalls"|"sessionNotFound"|"sessionBusy"|"runNotFound"|"invalidConfiguration"|"overloaded"|"parseError"|"invalidRequest"|"methodNotFound"|"invalidParams"|"internalError"|"serverNotInitialized"|"requestCancelled"

---@alias sidecar.TurnEnd "toolCalls"|"stop"|"length"|"contentFilter"

---@alias sidecar.ApprovalDecision "allowOnce"|"allowSession"|"allowAlways"|"deny"|"denyAndStop"

---@alias sidecar.DecidedBy "host"|"rule"|"deadline"|"cancel"

---@alias sidecar.ExportFormat "json"|"markdown"|"replay"

---@alias sidecar.ToolKind "web"|"file"|"code"|"function"|"custom"|"mcp"|"openapi"|"unknown"

---@alias sidecar.RuleDecision "allow"|"ask"|"deny"

---@alias sidecar.CallOutcome "ok"|"failed"|"denied"|"cancelled"|"interrupted"

---@alias sidecar.ServerStatus "starting"|"ready"|"failed"|"stopped"|"needsAuth"

---@alias sidecar.LogLevel "debug"|"info"|"notice"|"warning"|"error"|"critical"|"alert"|"emergency"

---@alias sidecar.Content string|sidecar.ContentBlock[]

---@alias sidecar.ContentBlock sidecar.TextBlock|sidecar.ImageBlock|sidecar.AudioBlock|sidecar.ResourceBlock|sidecar.ResourceLinkBlock|sidecar.UnknownBlock

---@alias sidecar.AgentEvent sidecar.RunStarted|sidecar.AssistantTextDelta|sidecar.AssistantReasoningDelta|sidecar.ToolExecutionStarted|sidecar.ToolExecutionProgress|sidecar.ToolExecutionCompleted|sidecar.TurnComplete|sidecar.ApprovalRequested|sidecar.ApprovalResolved|sidecar.Retrying|sidecar.Compacted|sidecar.Warned|sidecar.RunCompleted

--- One run. Exactly one of `prompt` and `messages`; everything else overrides the options for this run.
---@class sidecar.SubmitParams
---@field prompt? sidecar.Content
---@field messages? sidecar.Message[]
---@field sessionId? string
---@field runId? string
---@field model? string
---@field system? string
---@field tools? sidecar.ToolSelector
---@field maxTurns? integer
---@field toolTimeoutSecs? number
---@field errorPolicy? table<string, sidecar.ErrorAction>
---@field temperature? number
---@field maxOutputTokens? integer
---@field wait? boolean
---@field queue? boolean
---@field workDoneToken? string|integer

--- Text, as in MCP `TextContent`.
---@class sidecar.TextBlock
---@field type "text"
---@field text string
---@field annotations? table<string, any>

--- An image; `data` is base64.
---@class sidecar.ImageBlock
---@field type "image"
---@field data string
---@field mimeType string
---@field annotations? table<string, any>

--- A sound; `data` is base64.
---@class sidecar.AudioBlock
---@field type "audio"
---@field data string
---@field mimeType string
---@field annotations? table<string, any>

--- An embedded resource: `{uri, mimeType?, text | blob}`.
---@class sidecar.ResourceBlock
---@field type "resource"
---@field resource table<string, any>
---@field annotations? table<string, any>

--- A resource by its address, to be read on demand.
---@class sidecar.ResourceLinkBlock
---@field type "resource_link"
---@field uri string
---@field name string
---@field title? string
---@field description? string
---@field mimeType? string
---@field size? integer
---@field annotations? table<string, any>

--- A block of a type this version does not know, kept as it came.
---@class sidecar.UnknownBlock
---@field type string

--- One entry of a conversation.
---
--- `tool_calls` and `reasoning` occur on assistant messages, `call_id`, `tool_name` and `is_error` on tool
--- messages. `provider_extras` goes back byte for byte, and only to the provider that sent it.
---@class sidecar.Message
---@field role sidecar.Role
---@field content sidecar.Content
---@field toolCalls? sidecar.ToolCall[]
---@field callId? string
---@field toolName? string
---@field isError? boolean
---@field reasoning? string
---@field providerExtras? sidecar.ProviderExtras

--- A model's request to run a tool. `input` is a JSON object always, `call_id` unique in its session.
---@class sidecar.ToolCall
---@field callId string
---@field toolName string
---@field input table<string, any>

--- What a provider wants back unchanged (signatures, thinking blocks), and who it belongs to.
---@class sidecar.ProviderExtras
---@field provider string
---@field data any

--- Which tools: those that match every field given, less the names in `exclude`.
---
--- `names` and `exclude` are globs over tool names.
---@class sidecar.ToolSelector
---@field names? string[]
---@field tags? string[]
---@field categories? string[]
---@field sources? sidecar.SourceType[]
---@field exclude? string[]

--- With `wait: false` only the two ids.
---@class sidecar.SubmitResult
---@field sessionId string
---@field runId string
---@field stopReason? sidecar.StopReason
---@field message? sidecar.Message
---@field turns? integer
---@field usage? sidecar.Usage

--- Tokens. `tool_definition_tokens` and `tool_result_tokens` are our estimate of their part of the input.
---@class sidecar.Usage
---@field inputTokens? integer
---@field outputTokens? integer
---@field totalTokens? integer
---@field cachedTokens? integer
---@field toolDefinitionTokens? integer
---@field toolResultTokens? integer

--- A run by either id; both are allowed.
---@class sidecar.CancelParams
---@field sessionId? string
---@field runId? string

--- Whether something that ran was cancelled.
---@class sidecar.CancelResult
---@field cancelled boolean

--- Words for a running run, read by the model before its next turn.
---@class sidecar.SteerParams
---@field runId string
---@field prompt sidecar.Content

--- False when the run is over or on its last turn, so that nothing was said.
---@class sidecar.SteerResult
---@field accepted boolean

--- `title` is for people.
---@class sidecar.SessionCreateParams
---@field title? string

--- The session that was made.
---@class sidecar.SessionIdResult
---@field sessionId string

--- One page: `cursor` from the page before, at most `limit` entries (default 50, at most 1000).
---@class sidecar.PageParams
---@field cursor? string
---@field limit? integer

--- Sessions, the last touched first.
---@class sidecar.SessionListResult
---@field sessions sidecar.SessionSummary[]
---@field nextCursor? string

--- A line of a list of sessions.
---@class sidecar.SessionSummary
---@field sessionId string
---@field title? string
---@field createdMs integer
---@field updatedMs integer
---@field messageCount integer

--- One session, by its id.
---@class sidecar.SessionParams
---@field sessionId string

--- A session, whole.
---@class sidecar.SessionGetResult
---@field sessionId string
---@field title? string
---@field messages sidecar.Message[]
---@field runs sidecar.RunSummary[]

--- A run of a session and how it ended.
---@class sidecar.RunSummary
---@field runId string
---@field status sidecar.RunStatus
---@field stopReason? sidecar.StopReason

--- The events of one run, or of all; only those after `after_seq` of that run.
---@class sidecar.SessionEventsParams
---@field sessionId string
---@field runId? string
---@field afterSeq? integer

--- The events as they were sent.
---@class sidecar.SessionEventsResult
---@field events sidecar.AgentEventParams[]

--- An event and its number; `seq` counts from 0 in its run, without a gap.
---@class sidecar.AgentEventParams
---@field sessionId string
---@field runId string
---@field seq integer
---@field event sidecar.AgentEvent

--- Always the first. `prompt` is absent when the run was given messages instead.
---@class sidecar.RunStarted
---@field type "runStarted"
---@field model string
---@field prompt? sidecar.Content

--- More of the answer's text; the deltas of a turn, joined, are its text.
---@class sidecar.AssistantTextDelta
---@field type "assistantTextDelta"
---@field text string

--- More of what the model thinks before it answers; never part of the answer's text.
---@class sidecar.AssistantReasoningDelta
---@field type "assistantReasoningDelta"
---@field text string

--- The model asks for this call; it has not run yet.
---@class sidecar.ToolExecutionStarted
---@field type "toolExecutionStarted"
---@field callId string
---@field toolName string
---@field input table<string, any>

--- A running tool reports. `partial` is a part of its result.
---@class sidecar.ToolExecutionProgress
---@field type "toolExecutionProgress"
---@field callId string
---@field done? number
---@field total? number
---@field message? string
---@field partial? any

--- The call is over. `output` is what the model is shown, cut to the limit when `truncated`.
---@class sidecar.ToolExecutionCompleted
---@field type "toolExecutionCompleted"
---@field callId string
---@field toolName string
---@field output sidecar.Content
---@field isError boolean
---@field errorKind? sidecar.ErrorKind
---@field durationMs integer
---@field truncated boolean
---@field originalBytes? integer

--- One answer of the model is whole. `turn` counts from 1.
---@class sidecar.TurnComplete
---@field type "turnComplete"
---@field turn integer
---@field reason sidecar.TurnEnd
---@field usage sidecar.Usage

--- Somebody is asked; the question itself is the request `agent/requestApproval`.
---@class sidecar.ApprovalRequested
---@field type "approvalRequested"
---@field requestId string
---@field callId string
---@field toolName string
---@field permissions string[]
---@field reason string

--- The question is over; whoever still shows it takes it away.
---@class sidecar.ApprovalResolved
---@field type "approvalResolved"
---@field requestId string
---@field decision sidecar.ApprovalDecision
---@field by sidecar.DecidedBy

--- The provider failed in a way that may pass; the request goes out again after `delay_ms`.
---@class sidecar.Retrying
---@field type "retrying"
---@field attempt integer
---@field delayMs integer
---@field reason string

--- The history was made smaller.
---@class sidecar.Compacted
---@field type "compacted"
---@field beforeTokens integer
---@field afterTokens integer

--- Something was mended, left out or is late, and the run goes on. `code` is for programs.
---@class sidecar.Warned
---@field type "warning"
---@field code string
---@field message string

--- Always the last.
---@class sidecar.RunCompleted
---@field type "runCompleted"
---@field stopReason sidecar.StopReason
---@field usage sidecar.Usage
---@field error? sidecar.EventError

--- Why a run ended, in the shape of a JSON-RPC error.
---@class sidecar.EventError
---@field code integer
---@field message string
---@field data table<string, any>

--- A new session with the first `at_message` messages of an old one (absent: all).
---@class sidecar.SessionForkParams
---@field sessionId string
---@field atMessage? integer

--- About how many tokens the history was before and is now; equal when nothing could be left out.
---@class sidecar.SessionCompactResult
---@field beforeTokens integer
---@field afterTokens integer

--- A session as a document. `"replay"` is a script that the provider `replay` plays.
---@class sidecar.SessionExportParams
---@field sessionId string
---@field format sidecar.ExportFormat

--- The document, to be written into a file as it is.
---@class sidecar.SessionExportResult
---@field format sidecar.ExportFormat
---@field text string

--- False when there was no such session.
---@class sidecar.SessionDeleteResult
---@field deleted boolean

--- Tools that `selector` takes, all of them without one.
---@class sidecar.ToolsListParams
---@field selector? sidecar.ToolSelector
---@field cursor? string
---@field limit? integer

--- Tools by name.
---@class sidecar.ToolsListResult
---@field tools sidecar.ToolInfo[]
---@field nextCursor? string

--- What a host is told of a tool.
---@class sidecar.ToolInfo
---@field name string
---@field description string
---@field inputSchema table<string, any>
---@field kind sidecar.ToolKind
---@field category? string
---@field tags string[]
---@field version? string
---@field requiredPermissions string[]
---@field requiresApproval boolean
---@field source sidecar.ToolSource
---@field stats sidecar.ToolStats

--- Where a tool comes from; `server` names the MCP server.
---@class sidecar.ToolSource
---@field type sidecar.SourceType
---@field server? string

--- Calls so far, failures among them (errors, denials, time-outs), and the mean time of a call.
---@class sidecar.ToolStats
---@field calls? integer
---@field failures? integer
---@field meanDurationMs? number

--- One tool, run for the host: same checks, same approvals as in the loop.
---@class sidecar.ToolsCallParams
---@field name string
---@field arguments? table<string, any>
---@field sessionId? string
---@field callId? string
---@field timeoutSecs? number
---@field workDoneToken? string|integer

--- The record of the call. `content` is what a model would be shown.
---@class sidecar.ToolsCallResult
---@field callId string
---@field toolName string
---@field input table<string, any>
---@field result sidecar.ToolOutcome
---@field content sidecar.ContentBlock[]
---@field durationMs integer
---@field truncated boolean
---@field originalBytes? integer

--- What the tool answered, without its blocks.
---@class sidecar.ToolOutcome
---@field ok boolean
---@field data? any
---@field error? string

--- Tools of the host. A name that is taken is an error, and then none of them is registered.
---@class sidecar.ToolsRegisterParams
---@field tools sidecar.HostTool[]

--- A tool that the host runs. Without `required_permissions` it needs none.
---@class sidecar.HostTool
---@field name string
---@field description string
---@field inputSchema table<string, any>
---@field requiredPermissions? string[]
---@field requiresApproval? boolean
---@field tags? string[]
---@field category? string
---@field timeoutSecs? number

--- The names that joined.
---@class sidecar.ToolsRegisterResult
---@field registered string[]

--- Names of tools that the host registered; others are passed over.
---@class sidecar.ToolsUnregisterParams
---@field names string[]

--- The names that left.
---@class sidecar.ToolsUnregisterResult
---@field unregistered string[]

--- With `session_id`, what is in force in that session.
---@class sidecar.PermissionsGetParams
---@field sessionId? string

--- The configuration in force, every field present.
---@class sidecar.PermissionsResult
---@field allowed string[]
---@field denied string[]
---@field ask string[]
---@field allowUnspecified boolean
---@field rules sidecar.PermissionRule[]

--- A decision for the calls of one tool.
---
--- `tool` is a glob over tool names. `arguments` maps an argument's name to a glob over its text; every one
--- named must match. Without `arguments` the rule takes any call.
---@class sidecar.PermissionRule
---@field tool string
---@field decision sidecar.RuleDecision
---@field arguments? table<string, string>

--- The new values; `scope: "session"` needs `session_id`.
---@class sidecar.PermissionsSetParams
---@field scope "session"|"workspace"
---@field sessionId? string
---@field allowed? string[]
---@field denied? string[]
---@field ask? string[]
---@field allowUnspecified? boolean
---@field rules? sidecar.PermissionRule[]

--- What would be decided for this call.
---@class sidecar.PermissionsCheckParams
---@field name string
---@field arguments? table<string, any>
---@field sessionId? string

--- `rule` says which rule decides, in words that name it; `permission` is the one it decided on.
---@class sidecar.PermissionsCheckResult
---@field decision sidecar.RuleDecision
---@field rule string
---@field permission? string

--- Entries that match every field given, in pages as in PageParams.
---@class sidecar.AuditListParams
---@field sessionId? string
---@field runId? string
---@field toolName? string
---@field decision? sidecar.RuleDecision
---@field sinceMs? integer
---@field untilMs? integer
---@field cursor? string
---@field limit? integer

--- Entries, the newest first.
---@class sidecar.AuditListResult
---@field entries sidecar.AuditEntry[]
---@field nextCursor? string

--- A call of a tool: what was decided about it, and what came of it.
---@class sidecar.AuditEntry
---@field timeMs integer
---@field sessionId? string
---@field runId? string
---@field callId string
---@field toolName string
---@field inputDigest string
---@field decision? sidecar.RuleDecision
---@field permission? string
---@field rule? string
---@field decidedBy? sidecar.DecidedBy
---@field answer? sidecar.ApprovalDecision
---@field outcome? sidecar.CallOutcome
---@field errorKind? string
---@field durationMs? integer

--- A method that takes nothing; `params` may be absent, `{}` or `[]`.
---@class sidecar.NoParams

--- Servers by name.
---@class sidecar.McpListResult
---@field servers sidecar.ServerInfo[]

--- One MCP server. `server_info` is what it says of itself, for display only.
---@class sidecar.ServerInfo
---@field name string
---@field status sidecar.ServerStatus
---@field protocolVersion? string
---@field serverInfo? table<string, any>
---@field offers? string[]
---@field toolCount? integer
---@field error? sidecar.ServerFailure
---@field pid? integer

--- Why a server is not ready, and the last lines it wrote to stderr.
---@class sidecar.ServerFailure
---@field kind string
---@field message string
---@field stderrTail? string

--- A server's configuration in the `mcpServers` shape; answers when it is ready or has failed.
---@class sidecar.McpConnectParams
---@field name string
---@field config table<string, any>

--- One server, by its configured name.
---@class sidecar.McpServerParams
---@field name string

--- A list that a server offers.
---@class sidecar.McpOfferParams
---@field server string

--- `Resource` objects of MCP, as they came.
---@class sidecar.McpResourcesResult
---@field resources table<string, any>[]

--- `ResourceTemplate` objects of MCP, as they came.
---@class sidecar.McpResourceTemplatesResult
---@field resourceTemplates table<string, any>[]

--- One resource of a server.
---@class sidecar.McpReadResourceParams
---@field server string
---@field uri string

--- `TextResourceContents` and `BlobResourceContents` of MCP, as they came.
---@class sidecar.McpReadResourceResult
---@field contents table<string, any>[]

--- The resources of a server that the host wants to hear of, in place of those before.
---@class sidecar.McpWatchResourcesParams
---@field server string
---@field uris string[]

--- `Prompt` objects of MCP, as they came.
---@class sidecar.McpPromptsResult
---@field prompts table<string, any>[]

--- One prompt of a server, and what fills it in.
---@class sidecar.McpGetPromptParams
---@field server string
---@field name string
---@field arguments? table<string, string>

--- `PromptMessage` objects of MCP, as they came.
---@class sidecar.McpGetPromptResult
---@field description? string
---@field messages table<string, any>[]

--- What is being filled in: `ref`, `argument` and `context` as in MCP's `completion/complete`.
---@class sidecar.McpCompleteParams
---@field server string
---@field ref table<string, any>
---@field argument table<string, any>
---@field context? table<string, any>

--- `{values, total?, hasMore?}`.
---@class sidecar.McpCompleteResult
---@field completion table<string, any>

--- From which level on a server is to write into the log; kept when it is restarted.
---@class sidecar.McpSetLogLevelParams
---@field server string
---@field level sidecar.LogLevel

--- Models of the configured providers; one that cannot be reached adds none.
---@class sidecar.ModelsListResult
---@field models sidecar.ModelInfo[]
---@field nextCursor? string

--- `model` is what `agent/submit` takes: `provider/model`.
---@class sidecar.ModelInfo
---@field model string
---@field provider string
---@field contextTokens? integer

--- More of the text of an answer that the host is still working on.
---@class sidecar.ModelDeltaParams
---@field requestId string
---@field text string

--- May this call run? No answer by `deadline_ms` (a span from now) means no.
---@class sidecar.RequestApprovalParams
---@field requestId string
---@field sessionId? string
---@field runId? string
---@field callId string
---@field toolName string
---@field input table<string, any>
---@field permissions string[]
---@field reason string
---@field title string
---@field options sidecar.ApprovalOption[]
---@field diff? string
---@field deadlineMs integer

--- A choice to show. `rule` is exactly what will be remembered when it is taken.
---@class sidecar.ApprovalOption
---@field decision sidecar.ApprovalDecision
---@field label string
---@field rule? sidecar.PermissionRule

--- The host's word. `updated_input` replaces the arguments, which are then checked again.
---@class sidecar.RequestApprovalResult
---@field decision sidecar.ApprovalDecision
---@field rule? sidecar.PermissionRule
---@field reason? string
---@field updatedInput? table<string, any>

--- A question to a person, on behalf of `source`; `schema` says what `content` must be.
---@class sidecar.RequestInputParams
---@field requestId string
---@field sessionId? string
---@field runId? string
---@field message string
---@field schema? table<string, any>
---@field url? string
---@field source string
---@field deadlineMs integer

--- Only `accept` brings content.
---@class sidecar.RequestInputResult
---@field action "accept"|"decline"|"cancel"
---@field content? any

--- To the host: run one of its tools. Progress comes back as `$/progress` with `call_id` as token.
---@class sidecar.ToolsExecuteParams
---@field callId string
---@field name string
---@field arguments table<string, any>
---@field sessionId? string
---@field runId? string

--- What the host's tool answered.
---@class sidecar.ToolsExecuteResult
---@field ok boolean
---@field data? any
---@field error? string
---@field content? sidecar.ContentBlock[]

--- One answer of a model of the host's. `messages` is the whole conversation, `tools` what may be called.
---
--- `idle_timeout_ms` is how long the sidecar waits for a word, of the answer or of its text before it.
---@class sidecar.ModelCompleteParams
---@field requestId string
---@field model? string
---@field system? string
---@field messages sidecar.Message[]
---@field tools sidecar.ToolDefinition[]
---@field temperature? number
---@field maxOutputTokens? integer
---@field idleTimeoutMs integer

--- What a model is told of a tool. `parameters` is a JSON Schema 2020-12 object, verbatim.
---@class sidecar.ToolDefinition
---@field name string
---@field description string
---@field parameters table<string, any>

--- The answer, whole, also where its text came before. Without `finish_reason` its calls say why it ended.
---@class sidecar.ModelCompleteResult
---@field message sidecar.Message
---@field finishReason? string
---@field usage? sidecar.Usage

--- What a person was asked to do at a `url` is done, the server says.
---@class sidecar.InputDoneParams
---@field requestId string

--- The registry changed, by names.
---@class sidecar.ToolsChangedParams
---@field added string[]
---@field removed string[]
---@field changed string[]

--- A server's list of `resources` or `prompts` changed, or the `resource` at `uri`.
---@class sidecar.McpOffersChangedParams
---@field server string
---@field what "resources"|"prompts"|"resource"
---@field uri? string

--- A session came, went, or has more messages.
---@class sidecar.SessionChangedParams
---@field sessionId string
---@field change "created"|"updated"|"deleted"
---@field title? string
---@field updatedMs? integer
---@field messageCount? integer

--- Everything that can be set. A field left out is not said, so that a weaker source may say it.
---@class sidecar.InitializationOptions
---@field model? string
---@field system? string
---@field providers? table<string, sidecar.ProviderOptions>
---@field mcpServers? table<string, sidecar.StdioServer|sidecar.HttpServer|table<string, any>>
---@field inputs? sidecar.InputDefinition[]
---@field permissions? sidecar.PermissionOptions
---@field cycle? sidecar.CycleOptions
---@field store? sidecar.StoreOptions
---@field builtinTools? boolean|string[]
---@field tools? string[]
---@field workspaceFolders? sidecar.WorkspaceFolder[]
---@field maxFrameBytes? integer
---@field trustWorkspace? boolean

--- One entry of `providers`. A field left out is taken from the preset of that name, if there is one.
---
--- `base_url` may end in `/v1` or not. The key is `api_key`, else what the variable `api_key_env` holds.
--- `timeout_secs` limits the wait for the answer to begin (default: `idle_timeout_secs`), `idle_timeout_secs`
--- the silence within it, `connect_timeout_secs` the making of the connection. `context_tokens` is how much
--- the model takes. `parameters` are sent with every request, as the API names them. `file` is the script of
--- the `replay` provider, `record` the file in which what the model says is written down as such a script.
---@class sidecar.ProviderOptions
---@field api? "openai-chat"|"anthropic"|"host"|"replay"
---@field baseUrl? string
---@field apiKey? string
---@field apiKeyEnv? string
---@field headers? table<string, string>
---@field timeoutSecs? number
---@field connectTimeoutSecs? number
---@field idleTimeoutSecs? number
---@field contextTokens? integer
---@field parameters? table<string, any>
---@field file? string
---@field record? string

--- How to start a server that speaks over stdin and stdout.
---
--- A number in `env` stands for its text, None takes a variable away. `env_file` names a file of more variables,
--- which `env` outweighs; `inherit_env` names variables of ours that the server sees too. `permissions` maps a
--- glob over tool names to the permissions that such a tool needs.
---@class sidecar.StdioServer
---@field command string
---@field args? string[]
---@field env? table<string, string|integer|nil>
---@field envFile? string
---@field cwd? string
---@field inheritEnv? string[]
---@field timeoutSecs? number
---@field startTimeoutSecs? number
---@field disabled? boolean
---@field permissions? table<string, string[]>

--- Where a server is that speaks over HTTP. Its URL and headers may hold secrets.
---
--- `type` "sse" is the transport of 2024-11-05, "http" the one since. `oauth` is kept as it was written.
---@class sidecar.HttpServer
---@field url string
---@field type? "http"|"sse"
---@field headers? table<string, string>
---@field oauth? sidecar.OAuthOptions
---@field timeoutSecs? number
---@field startTimeoutSecs? number
---@field disabled? boolean
---@field permissions? table<string, string[]>

--- What is not said is found out: from the server's metadata, by registration, by asking a person.
---
--- `redirect_uri` and `callback_port` are for clients that were registered with one exact loopback address.
--- `assertion` is a workload's JWT, `id_token` that of a person; both may lie in a file that is read each time.
---@class sidecar.OAuthOptions
---@field grantType? string
---@field clientId? string
---@field clientSecret? string
---@field clientMetadataUrl? string
---@field scopes? string|string[]
---@field redirectUri? string
---@field callbackPort? integer
---@field privateKeyPem? string
---@field signingAlgorithm? string
---@field keyId? string
---@field assertion? string
---@field assertionFile? string
---@field idpIssuer? string
---@field idpTokenEndpoint? string
---@field idpClientId? string
---@field idpClientSecret? string
---@field idToken? string
---@field idTokenFile? string

--- An entry of `inputs`, as VS Code has it: what `${input:id}` in a server's entry asks a person for.
---
--- Every answer is a secret, whatever `password` says: that only tells the host not to show it.
---@class sidecar.InputDefinition
---@field id string
---@field type? string
---@field description? string
---@field default? string
---@field password? boolean
---@field options? any[]

--- Permissions as a host or a file writes them; a field left out keeps what was there before.
---@class sidecar.PermissionOptions
---@field allowed? string[]
---@field denied? string[]
---@field ask? string[]
---@field allowUnspecified? boolean
---@field rules? sidecar.PermissionRule[]

--- `cycle`: the limits of a run, and how long people and servers are waited for.
---@class sidecar.CycleOptions
---@field maxTurns? integer
---@field toolTimeoutSecs? number
---@field maxToolResultBytes? integer
---@field errorPolicy? table<string, sidecar.ErrorAction>
---@field repeatWarning? integer
---@field repeatLimit? integer
---@field maxRetries? integer
---@field maxRetryDelaySecs? number
---@field summary? "model"|"rule"
---@field serverWaitSecs? number
---@field approvalTimeoutSecs? number

--- `store`: where sessions are kept, and for how long.
---@class sidecar.StoreOptions
---@field path? string
---@field maxAgeDays? number
---@field maxBytes? integer

--- A folder as LSP names it.
---@class sidecar.WorkspaceFolder
---@field uri string
---@field name? string

--- What the host can do: `capabilities.experimental.agentSidecar` of the params of `initialize`.
---
--- `protocol_version` is the one that it was written for. It answers `agent/requestApproval` (`approvals`),
--- `agent/requestInput` (`input`), `tools/execute` (`host_tools`) and `model/complete` (`host_model`).
--- `opt_out_events` are the types of events that it does not want.
---@class sidecar.HostAbilities
---@field protocolVersion? string
---@field approvals? boolean
---@field input? boolean
---@field hostTools? boolean
---@field hostModel? boolean
---@field optOutEvents? string[]

--- What makes it a sidecar's: `capabilities.experimental.agentSidecar` of the result of `initialize`.
---
--- `methods` are those that a host may send, `events` the types that may come, `models` those that the options
--- name, as `provider/model`.
---@class sidecar.SidecarDescription
---@field protocolVersion string
---@field methods string[]
---@field events string[]
---@field models string[]

---@alias sidecar.HostMethod "agent/submit"|"agent/cancel"|"agent/steer"|"session/create"|"session/list"|"session/get"|"session/events"|"session/fork"|"session/compact"|"session/export"|"session/delete"|"tools/list"|"tools/call"|"tools/register"|"tools/unregister"|"permissions/get"|"permissions/set"|"permissions/check"|"audit/list"|"mcp/list"|"mcp/connect"|"mcp/disconnect"|"mcp/restart"|"mcp/resources"|"mcp/resourceTemplates"|"mcp/readResource"|"mcp/watchResources"|"mcp/prompts"|"mcp/getPrompt"|"mcp/complete"|"mcp/setLogLevel"|"models/list"|"model/delta"
---@alias sidecar.SidecarMethod "agent/requestApproval"|"agent/requestInput"|"tools/execute"|"model/complete"|"agent/event"|"agent/inputDone"|"tools/changed"|"mcp/statusChanged"|"mcp/offersChanged"|"session/changed"
