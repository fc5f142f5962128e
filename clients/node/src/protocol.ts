// Made by `agent-sidecar schema --format typescript`; change the types in sidecar/protocol and make it again.

export const PROTOCOL_VERSION = "1.0";

/** An object whose inside is not the protocol's: tool arguments, JSON Schema. */
export type JsonObject = { [name: string]: unknown };

export type Role = "system" | "user" | "assistant" | "tool";

export type SourceType = "builtin" | "python" | "mcp" | "host";

export type ErrorAction = "tellModel" | "stop";

export type StopReason = "stop" | "length" | "contentFilter" | "cancelled" | "error";

export type RunStatus = "running" | "completed" | "failed" | "cancelled";

export type ErrorKind = "notFound" | "executionFailed" | "invalidArguments" | "permissionDenied" | "mcpError" | "mcpNotInitialized" | "mcpTimeout" | "io" | "other" | "timeout" | "modelError" | "modelTimeout" | "contextOverflow" | "maxTurnsExceeded" | "repeatedToolCalls" | "sessionNotFound" | "sessionBusy" | "runNotFound" | "invalidConfiguration" | "overloaded" | "parseError" | "invalidRequest" | "methodNotFound" | "invalidParams" | "internalError" | "serverNotInitialized" | "requestCancelled";

export type TurnEnd = "toolCalls" | "stop" | "length" | "contentFilter";

export type ApprovalDecision = "allowOnce" | "allowSession" | "allowAlways" | "deny" | "denyAndStop";

export type DecidedBy = "host" | "rule" | "deadline" | "cancel";

export type ExportFormat = "json" | "markdown" | "replay";

export type ToolKind = "web" | "file" | "code" | "function" | "custom" | "mcp" | "openapi" | "unknown";

export type RuleDecision = "allow" | "ask" | "deny";

export type CallOutcome = "ok" | "failed" | "denied" | "cancelled" | "interrupted";

export type ServerStatus = "starting" | "ready" | "failed" | "stopped" | "needsAuth";

export type LogLevel = "debug" | "info" | "notice" | "warning" | "error" | "critical" | "alert" | "emergency";

export type Content = string | ContentBlock[];

export type ContentBlock = TextBlock | ImageBlock | AudioBlock | ResourceBlock | ResourceLinkBlock | UnknownBlock;

export type AgentEvent = RunStarted | AssistantTextDelta | AssistantReasoningDelta | ToolExecutionStarted | ToolExecutionProgress | ToolExecutionCompleted | TurnComplete | ApprovalRequested | ApprovalResolved | Retrying | Compacted | Warned | RunCompleted;

/** One run. Exactly one of `prompt` and `messages`; everything else overrides the options for this run. */
export interface SubmitParams {
  prompt?: Content | null;
  messages?: Message[] | null;
  sessionId?: string | null;
  runId?: string | null;
  model?: string | null;
  system?: string | null;
  tools?: ToolSelector | null;
  maxTurns?: number | null;
  toolTimeoutSecs?: number | null;
  errorPolicy?: { [name: string]: ErrorAction } | null;
  temperature?: number | null;
  maxOutputTokens?: number | null;
  wait?: boolean | null;
  queue?: boolean | null;
  workDoneToken?: string | number | null;
}

/** Text, as in MCP `TextContent`. */
export interface TextBlock {
  type: "text";
  text: string;
  annotations?: JsonObject | null;
}

/** An image; `data` is base64. */
export interface ImageBlock {
  type: "image";
  data: string;
  mimeType: string;
  annotations?: JsonObject | null;
}

/** A sound; `data` is base64. */
export interface AudioBlock {
  type: "audio";
  data: string;
  mimeType: string;
  annotations?: JsonObject | null;
}

/** An embedded resource: `{uri, mimeType?, text | blob}`. */
export interface ResourceBlock {
  type: "resource";
  resource: JsonObject;
  annotations?: JsonObject | null;
}

/** A resource by its address, to be read on demand. */
export interface ResourceLinkBlock {
  type: "resource_link";
  uri: string;
  name: string;
  title?: string | null;
  description?: string | null;
  mimeType?: string | null;
  size?: number | null;
  annotations?: JsonObject | null;
}

/** A block of a type this version does not know, kept as it came. */
export interface UnknownBlock {
  type: string;
  [name: string]: unknown;
}

/**
 * One entry of a conversation.
 *
 * `tool_calls` and `reasoning` occur on assistant messages, `call_id`, `tool_name` and `is_error` on tool
 * messages. `provider_extras` goes back byte for byte, and only to the provider that sent it.
 */
export interface Message {
  role: Role;
  content: Content;
  toolCalls?: ToolCall[] | null;
  callId?: string | null;
  toolName?: string | null;
  isError?: boolean | null;
  reasoning?: string | null;
  providerExtras?: ProviderExtras | null;
}

/** A model's request to run a tool. `input` is a JSON object always, `call_id` unique in its session. */
export interface ToolCall {
  callId: string;
  toolName: string;
  input: JsonObject;
}

/** What a provider wants back unchanged (signatures, thinking blocks), and who it belongs to. */
export interface ProviderExtras {
  provider: string;
  data: unknown;
}

/**
 * Which tools: those that match every field given, less the names in `exclude`.
 *
 * `names` and `exclude` are globs over tool names.
 */
export interface ToolSelector {
  names?: string[] | null;
  tags?: string[] | null;
  categories?: string[] | null;
  sources?: SourceType[] | null;
  exclude?: string[] | null;
}

/** With `wait: false` only the two ids. */
export interface SubmitResult {
  sessionId: string;
  runId: string;
  stopReason?: StopReason | null;
  message?: Message | null;
  turns?: number | null;
  usage?: Usage | null;
}

/** Tokens. `tool_definition_tokens` and `tool_result_tokens` are our estimate of their part of the input. */
export interface Usage {
  inputTokens?: number;
  outputTokens?: number;
  totalTokens?: number;
  cachedTokens?: number | null;
  toolDefinitionTokens?: number | null;
  toolResultTokens?: number | null;
}

/** A run by either id; both are allowed. */
export interface CancelParams {
  sessionId?: string | null;
  runId?: string | null;
}

/** Whether something that ran was cancelled. */
export interface CancelResult {
  cancelled: boolean;
}

/** Words for a running run, read by the model before its next turn. */
export interface SteerParams {
  runId: string;
  prompt: Content;
}

/** False when the run is over or on its last turn, so that nothing was said. */
export interface SteerResult {
  accepted: boolean;
}

/** `title` is for people. */
export interface SessionCreateParams {
  title?: string | null;
}

/** The session that was made. */
export interface SessionIdResult {
  sessionId: string;
}

/** One page: `cursor` from the page before, at most `limit` entries (default 50, at most 1000). */
export interface PageParams {
  cursor?: string | null;
  limit?: number | null;
}

/** Sessions, the last touched first. */
export interface SessionListResult {
  sessions: SessionSummary[];
  nextCursor?: string | null;
}

/** A line of a list of sessions. */
export interface SessionSummary {
  sessionId: string;
  title?: string | null;
  createdMs: number;
  updatedMs: number;
  messageCount: number;
}

/** One session, by its id. */
export interface SessionParams {
  sessionId: string;
}

/** A session, whole. */
export interface SessionGetResult {
  sessionId: string;
  title?: string | null;
  messages: Message[];
  runs: RunSummary[];
}

/** A run of a session and how it ended. */
export interface RunSummary {
  runId: string;
  status: RunStatus;
  stopReason?: StopReason | null;
}

/** The events of one run, or of all; only those after `after_seq` of that run. */
export interface SessionEventsParams {
  sessionId: string;
  runId?: string | null;
  afterSeq?: number | null;
}

/** The events as they were sent. */
export interface SessionEventsResult {
  events: AgentEventParams[];
}

/** An event and its number; `seq` counts from 0 in its run, without a gap. */
export interface AgentEventParams {
  sessionId: string;
  runId: string;
  seq: number;
  event: AgentEvent;
}

/** Always the first. `prompt` is absent when the run was given messages instead. */
export interface RunStarted {
  type: "runStarted";
  model: string;
  prompt?: Content | null;
}

/** More of the answer's text; the deltas of a turn, joined, are its text. */
export interface AssistantTextDelta {
  type: "assistantTextDelta";
  text: string;
}

/** More of what the model thinks before it answers; never part of the answer's text. */
export interface AssistantReasoningDelta {
  type: "assistantReasoningDelta";
  text: string;
}

/** The model asks for this call; it has not run yet. */
export interface ToolExecutionStarted {
  type: "toolExecutionStarted";
  callId: string;
  toolName: string;
  input: JsonObject;
}

/** A running tool reports. `partial` is a part of its result. */
export interface ToolExecutionProgress {
  type: "toolExecutionProgress";
  callId: string;
  done?: number | null;
  total?: number | null;
  message?: string | null;
  partial?: unknown;
}

/** The call is over. `output` is what the model is shown, cut to the limit when `truncated`. */
export interface ToolExecutionCompleted {
  type: "toolExecutionCompleted";
  callId: string;
  toolName: string;
  output: Content;
  isError: boolean;
  errorKind?: ErrorKind | null;
  durationMs: number;
  truncated: boolean;
  originalBytes?: number | null;
}

/** One answer of the model is whole. `turn` counts from 1. */
export interface TurnComplete {
  type: "turnComplete";
  turn: number;
  reason: TurnEnd;
  usage: Usage;
}

/** Somebody is asked; the question itself is the request `agent/requestApproval`. */
export interface ApprovalRequested {
  type: "approvalRequested";
  requestId: string;
  callId: string;
  toolName: string;
  permissions: string[];
  reason: string;
}

/** The question is over; whoever still shows it takes it away. */
export interface ApprovalResolved {
  type: "approvalResolved";
  requestId: string;
  decision: ApprovalDecision;
  by: DecidedBy;
}

/** The provider failed in a way that may pass; the request goes out again after `delay_ms`. */
export interface Retrying {
  type: "retrying";
  attempt: number;
  delayMs: number;
  reason: string;
}

/** The history was made smaller. */
export interface Compacted {
  type: "compacted";
  beforeTokens: number;
  afterTokens: number;
}

/** Something was mended, left out or is late, and the run goes on. `code` is for programs. */
export interface Warned {
  type: "warning";
  code: string;
  message: string;
}

/** Always the last. */
export interface RunCompleted {
  type: "runCompleted";
  stopReason: StopReason;
  usage: Usage;
  error?: EventError | null;
}

/** Why a run ended, in the shape of a JSON-RPC error. */
export interface EventError {
  code: number;
  message: string;
  data: JsonObject;
}

/** A new session with the first `at_message` messages of an old one (absent: all). */
export interface SessionForkParams {
  sessionId: string;
  atMessage?: number | null;
}

/** About how many tokens the history was before and is now; equal when nothing could be left out. */
export interface SessionCompactResult {
  beforeTokens: number;
  afterTokens: number;
}

/** A session as a document. `"replay"` is a script that the provider `replay` plays. */
export interface SessionExportParams {
  sessionId: string;
  format: ExportFormat;
}

/** The document, to be written into a file as it is. */
export interface SessionExportResult {
  format: ExportFormat;
  text: string;
}

/** False when there was no such session. */
export interface SessionDeleteResult {
  deleted: boolean;
}

/** Tools that `selector` takes, all of them without one. */
export interface ToolsListParams {
  selector?: ToolSelector | null;
  cursor?: string | null;
  limit?: number | null;
}

/** Tools by name. */
export interface ToolsListResult {
  tools: ToolInfo[];
  nextCursor?: string | null;
}

/** What a host is told of a tool. */
export interface ToolInfo {
  name: string;
  description: string;
  inputSchema: JsonObject;
  kind: ToolKind;
  category?: string | null;
  tags: string[];
  version?: string | null;
  requiredPermissions: string[];
  requiresApproval: boolean;
  source: ToolSource;
  stats: ToolStats;
}

/** Where a tool comes from; `server` names the MCP server. */
export interface ToolSource {
  type: SourceType;
  server?: string | null;
}

/** Calls so far, failures among them (errors, denials, time-outs), and the mean time of a call. */
export interface ToolStats {
  calls?: number;
  failures?: number;
  meanDurationMs?: number;
}

/** One tool, run for the host: same checks, same approvals as in the loop. */
export interface ToolsCallParams {
  name: string;
  arguments?: JsonObject | null;
  sessionId?: string | null;
  callId?: string | null;
  timeoutSecs?: number | null;
  workDoneToken?: string | number | null;
}

/** The record of the call. `content` is what a model would be shown. */
export interface ToolsCallResult {
  callId: string;
  toolName: string;
  input: JsonObject;
  result: ToolOutcome;
  content: ContentBlock[];
  durationMs: number;
  truncated: boolean;
  originalBytes?: number | null;
}

/** What the tool answered, without its blocks. */
export interface ToolOutcome {
  ok: boolean;
  data?: unknown;
  error?: string | null;
}

/** Tools of the host. A name that is taken is an error, and then none of them is registered. */
export interface ToolsRegisterParams {
  tools: HostTool[];
}

/** A tool that the host runs. Without `required_permissions` it needs none. */
export interface HostTool {
  name: string;
  description: string;
  inputSchema: JsonObject;
  requiredPermissions?: string[] | null;
  requiresApproval?: boolean | null;
  tags?: string[] | null;
  category?: string | null;
  timeoutSecs?: number | null;
}

/** The names that joined. */
export interface ToolsRegisterResult {
  registered: string[];
}

/** Names of tools that the host registered; others are passed over. */
export interface ToolsUnregisterParams {
  names: string[];
}

/** The names that left. */
export interface ToolsUnregisterResult {
  unregistered: string[];
}

/** With `session_id`, what is in force in that session. */
export interface PermissionsGetParams {
  sessionId?: string | null;
}

/** The configuration in force, every field present. */
export interface PermissionsResult {
  allowed: string[];
  denied: string[];
  ask: string[];
  allowUnspecified: boolean;
  rules: PermissionRule[];
}

/**
 * A decision for the calls of one tool.
 *
 * `tool` is a glob over tool names. `arguments` maps an argument's name to a glob over its text; every one
 * named must match. Without `arguments` the rule takes any call.
 */
export interface PermissionRule {
  tool: string;
  decision: RuleDecision;
  arguments?: { [name: string]: string } | null;
}

/** The new values; `scope: "session"` needs `session_id`. */
export interface PermissionsSetParams {
  scope: "session" | "workspace";
  sessionId?: string | null;
  allowed?: string[] | null;
  denied?: string[] | null;
  ask?: string[] | null;
  allowUnspecified?: boolean | null;
  rules?: PermissionRule[] | null;
}

/** What would be decided for this call. */
export interface PermissionsCheckParams {
  name: string;
  arguments?: JsonObject | null;
  sessionId?: string | null;
}

/** `rule` says which rule decides, in words that name it; `permission` is the one it decided on. */
export interface PermissionsCheckResult {
  decision: RuleDecision;
  rule: string;
  permission?: string | null;
}

/** Entries that match every field given, in pages as in PageParams. */
export interface AuditListParams {
  sessionId?: string | null;
  runId?: string | null;
  toolName?: string | null;
  decision?: RuleDecision | null;
  sinceMs?: number | null;
  untilMs?: number | null;
  cursor?: string | null;
  limit?: number | null;
}

/** Entries, the newest first. */
export interface AuditListResult {
  entries: AuditEntry[];
  nextCursor?: string | null;
}

/** A call of a tool: what was decided about it, and what came of it. */
export interface AuditEntry {
  timeMs: number;
  sessionId?: string | null;
  runId?: string | null;
  callId: string;
  toolName: string;
  inputDigest: string;
  decision?: RuleDecision | null;
  permission?: string | null;
  rule?: string | null;
  decidedBy?: DecidedBy | null;
  answer?: ApprovalDecision | null;
  outcome?: CallOutcome | null;
  errorKind?: string | null;
  durationMs?: number | null;
}

/** A method that takes nothing; `params` may be absent, `{}` or `[]`. */
export interface NoParams {
}

/** Servers by name. */
export interface McpListResult {
  servers: ServerInfo[];
}

/** One MCP server. `server_info` is what it says of itself, for display only. */
export interface ServerInfo {
  name: string;
  status: ServerStatus;
  protocolVersion?: string | null;
  serverInfo?: JsonObject | null;
  offers?: string[] | null;
  toolCount?: number;
  error?: ServerFailure | null;
  pid?: number | null;
}

/** Why a server is not ready, and the last lines it wrote to stderr. */
export interface ServerFailure {
  kind: string;
  message: string;
  stderrTail?: string | null;
}

/** A server's configuration in the `mcpServers` shape; answers when it is ready or has failed. */
export interface McpConnectParams {
  name: string;
  config: JsonObject;
}

/** One server, by its configured name. */
export interface McpServerParams {
  name: string;
}

/** A list that a server offers. */
export interface McpOfferParams {
  server: string;
}

/** `Resource` objects of MCP, as they came. */
export interface McpResourcesResult {
  resources: JsonObject[];
}

/** `ResourceTemplate` objects of MCP, as they came. */
export interface McpResourceTemplatesResult {
  resourceTemplates: JsonObject[];
}

/** One resource of a server. */
export interface McpReadResourceParams {
  server: string;
  uri: string;
}

/** `TextResourceContents` and `BlobResourceContents` of MCP, as they came. */
export interface McpReadResourceResult {
  contents: JsonObject[];
}

/** The resources of a server that the host wants to hear of, in place of those before. */
export interface McpWatchResourcesParams {
  server: string;
  uris: string[];
}

/** `Prompt` objects of MCP, as they came. */
export interface McpPromptsResult {
  prompts: JsonObject[];
}

/** One prompt of a server, and what fills it in. */
export interface McpGetPromptParams {
  server: string;
  name: string;
  arguments?: { [name: string]: string } | null;
}

/** `PromptMessage` objects of MCP, as they came. */
export interface McpGetPromptResult {
  description?: string | null;
  messages: JsonObject[];
}

/** What is being filled in: `ref`, `argument` and `context` as in MCP's `completion/complete`. */
export interface McpCompleteParams {
  server: string;
  ref: JsonObject;
  argument: JsonObject;
  context?: JsonObject | null;
}

/** `{values, total?, hasMore?}`. */
export interface McpCompleteResult {
  completion: JsonObject;
}

/** From which level on a server is to write into the log; kept when it is restarted. */
export interface McpSetLogLevelParams {
  server: string;
  level: LogLevel;
}

/** Models of the configured providers; one that cannot be reached adds none. */
export interface ModelsListResult {
  models: ModelInfo[];
  nextCursor?: string | null;
}

/** `model` is what `agent/submit` takes: `provider/model`. */
export interface ModelInfo {
  model: string;
  provider: string;
  contextTokens?: number | null;
}

/** More of the text of an answer that the host is still working on. */
export interface ModelDeltaParams {
  requestId: string;
  text: string;
}

/** May this call run? No answer by `deadline_ms` (a span from now) means no. */
export interface RequestApprovalParams {
  requestId: string;
  sessionId?: string | null;
  runId?: string | null;
  callId: string;
  toolName: string;
  input: JsonObject;
  permissions: string[];
  reason: string;
  title: string;
  options: ApprovalOption[];
  diff?: string | null;
  deadlineMs: number;
}

/** A choice to show. `rule` is exactly what will be remembered when it is taken. */
export interface ApprovalOption {
  decision: ApprovalDecision;
  label: string;
  rule?: PermissionRule | null;
}

/** The host's word. `updated_input` replaces the arguments, which are then checked again. */
export interface RequestApprovalResult {
  decision: ApprovalDecision;
  rule?: PermissionRule | null;
  reason?: string | null;
  updatedInput?: JsonObject | null;
}

/** A question to a person, on behalf of `source`; `schema` says what `content` must be. */
export interface RequestInputParams {
  requestId: string;
  sessionId?: string | null;
  runId?: string | null;
  message: string;
  schema?: JsonObject | null;
  url?: string | null;
  source: string;
  deadlineMs: number;
}

/** Only `accept` brings content. */
export interface RequestInputResult {
  action: "accept" | "decline" | "cancel";
  content?: unknown;
}

/** To the host: run one of its tools. Progress comes back as `$/progress` with `call_id` as token. */
export interface ToolsExecuteParams {
  callId: string;
  name: string;
  arguments: JsonObject;
  sessionId?: string | null;
  runId?: string | null;
}

/** What the host's tool answered. */
export interface ToolsExecuteResult {
  ok: boolean;
  data?: unknown;
  error?: string | null;
  content?: ContentBlock[] | null;
}

/**
 * One answer of a model of the host's. `messages` is the whole conversation, `tools` what may be called.
 *
 * `idle_timeout_ms` is how long the sidecar waits for a word, of the answer or of its text before it.
 */
export interface ModelCompleteParams {
  requestId: string;
  model?: string | null;
  system?: string | null;
  messages: Message[];
  tools: ToolDefinition[];
  temperature?: number | null;
  maxOutputTokens?: number | null;
  idleTimeoutMs: number;
}

/** What a model is told of a tool. `parameters` is a JSON Schema 2020-12 object, verbatim. */
export interface ToolDefinition {
  name: string;
  description: string;
  parameters: JsonObject;
}

/** The answer, whole, also where its text came before. Without `finish_reason` its calls say why it ended. */
export interface ModelCompleteResult {
  message: Message;
  finishReason?: string | null;
  usage?: Usage | null;
}

/** What a person was asked to do at a `url` is done, the server says. */
export interface InputDoneParams {
  requestId: string;
}

/** The registry changed, by names. */
export interface ToolsChangedParams {
  added: string[];
  removed: string[];
  changed: string[];
}

/** A server's list of `resources` or `prompts` changed, or the `resource` at `uri`. */
export interface McpOffersChangedParams {
  server: string;
  what: "resources" | "prompts" | "resource";
  uri?: string | null;
}

/** A session came, went, or has more messages. */
export interface SessionChangedParams {
  sessionId: string;
  change: "created" | "updated" | "deleted";
  title?: string | null;
  updatedMs?: number | null;
  messageCount?: number | null;
}

/** Everything that can be set. A field left out is not said, so that a weaker source may say it. */
export interface InitializationOptions {
  model?: string | null;
  system?: string | null;
  providers?: { [name: string]: ProviderOptions } | null;
  mcpServers?: { [name: string]: StdioServer | HttpServer | JsonObject } | null;
  inputs?: InputDefinition[] | null;
  permissions?: PermissionOptions | null;
  cycle?: CycleOptions | null;
  store?: StoreOptions | null;
  builtinTools?: boolean | string[] | null;
  tools?: string[] | null;
  workspaceFolders?: WorkspaceFolder[] | null;
  maxFrameBytes?: number | null;
  trustWorkspace?: boolean | null;
}

/**
 * One entry of `providers`. A field left out is taken from the preset of that name, if there is one.
 *
 * `base_url` may end in `/v1` or not. The key is `api_key`, else what the variable `api_key_env` holds.
 * `timeout_secs` limits the wait for the answer to begin (default: `idle_timeout_secs`), `idle_timeout_secs`
 * the silence within it, `connect_timeout_secs` the making of the connection. `context_tokens` is how much
 * the model takes. `parameters` are sent with every request, as the API names them. `file` is the script of
 * the `replay` provider, `record` the file in which what the model says is written down as such a script.
 */
export interface ProviderOptions {
  api?: "openai-chat" | "anthropic" | "host" | "replay" | null;
  baseUrl?: string | null;
  apiKey?: string | null;
  apiKeyEnv?: string | null;
  headers?: { [name: string]: string } | null;
  timeoutSecs?: number | null;
  connectTimeoutSecs?: number | null;
  idleTimeoutSecs?: number | null;
  contextTokens?: number | null;
  parameters?: JsonObject | null;
  file?: string | null;
  record?: string | null;
}

/**
 * How to start a server that speaks over stdin and stdout.
 *
 * A number in `env` stands for its text, None takes a variable away. `env_file` names a file of more variables,
 * which `env` outweighs; `inherit_env` names variables of ours that the server sees too. `permissions` maps a
 * glob over tool names to the permissions that such a tool needs.
 */
export interface StdioServer {
  command: string;
  args?: string[];
  env?: { [name: string]: string | number | null };
  envFile?: string | null;
  cwd?: string | null;
  inheritEnv?: string[];
  timeoutSecs?: number;
  startTimeoutSecs?: number;
  disabled?: boolean;
  permissions?: { [name: string]: string[] };
}

/**
 * Where a server is that speaks over HTTP. Its URL and headers may hold secrets.
 *
 * `type` "sse" is the transport of 2024-11-05, "http" the one since. `oauth` is kept as it was written.
 */
export interface HttpServer {
  url: string;
  type?: "http" | "sse";
  headers?: { [name: string]: string };
  oauth?: OAuthOptions | null;
  timeoutSecs?: number;
  startTimeoutSecs?: number;
  disabled?: boolean;
  permissions?: { [name: string]: string[] };
}

/**
 * What is not said is found out: from the server's metadata, by registration, by asking a person.
 *
 * `redirect_uri` and `callback_port` are for clients that were registered with one exact loopback address.
 * `assertion` is a workload's JWT, `id_token` that of a person; both may lie in a file that is read each time.
 */
export interface OAuthOptions {
  grantType?: string;
  clientId?: string | null;
  clientSecret?: string | null;
  clientMetadataUrl?: string | null;
  scopes?: string | string[] | null;
  redirectUri?: string | null;
  callbackPort?: number | null;
  privateKeyPem?: string | null;
  signingAlgorithm?: string | null;
  keyId?: string | null;
  assertion?: string | null;
  assertionFile?: string | null;
  idpIssuer?: string | null;
  idpTokenEndpoint?: string | null;
  idpClientId?: string | null;
  idpClientSecret?: string | null;
  idToken?: string | null;
  idTokenFile?: string | null;
}

/**
 * An entry of `inputs`, as VS Code has it: what `${input:id}` in a server's entry asks a person for.
 *
 * Every answer is a secret, whatever `password` says: that only tells the host not to show it.
 */
export interface InputDefinition {
  id: string;
  type?: string;
  description?: string | null;
  default?: string | null;
  password?: boolean;
  options?: unknown[] | null;
}

/** Permissions as a host or a file writes them; a field left out keeps what was there before. */
export interface PermissionOptions {
  allowed?: string[] | null;
  denied?: string[] | null;
  ask?: string[] | null;
  allowUnspecified?: boolean | null;
  rules?: PermissionRule[] | null;
}

/** `cycle`: the limits of a run, and how long people and servers are waited for. */
export interface CycleOptions {
  maxTurns?: number | null;
  toolTimeoutSecs?: number | null;
  maxToolResultBytes?: number | null;
  errorPolicy?: { [name: string]: ErrorAction } | null;
  repeatWarning?: number | null;
  repeatLimit?: number | null;
  maxRetries?: number | null;
  maxRetryDelaySecs?: number | null;
  summary?: "model" | "rule" | null;
  serverWaitSecs?: number | null;
  approvalTimeoutSecs?: number | null;
}

/** `store`: where sessions are kept, and for how long. */
export interface StoreOptions {
  path?: string | null;
  maxAgeDays?: number | null;
  maxBytes?: number | null;
}

/** A folder as LSP names it. */
export interface WorkspaceFolder {
  uri: string;
  name?: string | null;
}

/**
 * What the host can do: `capabilities.experimental.agentSidecar` of the params of `initialize`.
 *
 * `protocol_version` is the one that it was written for. It answers `agent/requestApproval` (`approvals`),
 * `agent/requestInput` (`input`), `tools/execute` (`host_tools`) and `model/complete` (`host_model`).
 * `opt_out_events` are the types of events that it does not want.
 */
export interface HostAbilities {
  protocolVersion?: string;
  approvals?: boolean;
  input?: boolean;
  hostTools?: boolean;
  hostModel?: boolean;
  optOutEvents?: string[];
}

/**
 * What makes it a sidecar's: `capabilities.experimental.agentSidecar` of the result of `initialize`.
 *
 * `methods` are those that a host may send, `events` the types that may come, `models` those that the options
 * name, as `provider/model`.
 */
export interface SidecarDescription {
  protocolVersion: string;
  methods: string[];
  events: string[];
  models: string[];
}

/** What a host asks the sidecar. */
export interface HostRequests {
  "agent/submit": { params: SubmitParams; result: SubmitResult };
  "agent/cancel": { params: CancelParams; result: CancelResult };
  "agent/steer": { params: SteerParams; result: SteerResult };
  "session/create": { params: SessionCreateParams; result: SessionIdResult };
  "session/list": { params: PageParams; result: SessionListResult };
  "session/get": { params: SessionParams; result: SessionGetResult };
  "session/events": { params: SessionEventsParams; result: SessionEventsResult };
  "session/fork": { params: SessionForkParams; result: SessionIdResult };
  "session/compact": { params: SessionParams; result: SessionCompactResult };
  "session/export": { params: SessionExportParams; result: SessionExportResult };
  "session/delete": { params: SessionParams; result: SessionDeleteResult };
  "tools/list": { params: ToolsListParams; result: ToolsListResult };
  "tools/call": { params: ToolsCallParams; result: ToolsCallResult };
  "tools/register": { params: ToolsRegisterParams; result: ToolsRegisterResult };
  "tools/unregister": { params: ToolsUnregisterParams; result: ToolsUnregisterResult };
  "permissions/get": { params: PermissionsGetParams; result: PermissionsResult };
  "permissions/set": { params: PermissionsSetParams; result: PermissionsResult };
  "permissions/check": { params: PermissionsCheckParams; result: PermissionsCheckResult };
  "audit/list": { params: AuditListParams; result: AuditListResult };
  "mcp/list": { params: NoParams; result: McpListResult };
  "mcp/connect": { params: McpConnectParams; result: ServerInfo };
  "mcp/disconnect": { params: McpServerParams; result: ServerInfo };
  "mcp/restart": { params: McpServerParams; result: ServerInfo };
  "mcp/resources": { params: McpOfferParams; result: McpResourcesResult };
  "mcp/resourceTemplates": { params: McpOfferParams; result: McpResourceTemplatesResult };
  "mcp/readResource": { params: McpReadResourceParams; result: McpReadResourceResult };
  "mcp/watchResources": { params: McpWatchResourcesParams; result: ServerInfo };
  "mcp/prompts": { params: McpOfferParams; result: McpPromptsResult };
  "mcp/getPrompt": { params: McpGetPromptParams; result: McpGetPromptResult };
  "mcp/complete": { params: McpCompleteParams; result: McpCompleteResult };
  "mcp/setLogLevel": { params: McpSetLogLevelParams; result: ServerInfo };
  "models/list": { params: PageParams; result: ModelsListResult };
}

/** What the sidecar asks the host. */
export interface SidecarRequests {
  "agent/requestApproval": { params: RequestApprovalParams; result: RequestApprovalResult };
  "agent/requestInput": { params: RequestInputParams; result: RequestInputResult };
  "tools/execute": { params: ToolsExecuteParams; result: ToolsExecuteResult };
  "model/complete": { params: ModelCompleteParams; result: ModelCompleteResult };
}

/** What a host tells the sidecar. */
export interface HostNotifications {
  "model/delta": { params: ModelDeltaParams };
}

/** What the sidecar tells the host. */
export interface SidecarNotifications {
  "agent/event": { params: AgentEventParams };
  "agent/inputDone": { params: InputDoneParams };
  "tools/changed": { params: ToolsChangedParams };
  "mcp/statusChanged": { params: ServerInfo };
  "mcp/offersChanged": { params: McpOffersChangedParams };
  "session/changed": { params: SessionChangedParams };
}

/** `data.kind` of an error, and its code. */
export const ERROR_CODES = {
  notFound: -31001,
  executionFailed: -31002,
  invalidArguments: -31003,
  permissionDenied: -31004,
  mcpError: -31005,
  mcpNotInitialized: -31006,
  mcpTimeout: -31007,
  io: -31008,
  other: -31009,
  timeout: -31010,
  modelError: -31020,
  modelTimeout: -31021,
  maxTurnsExceeded: -31022,
  contextOverflow: -31023,
  repeatedToolCalls: -31024,
  sessionNotFound: -31030,
  sessionBusy: -31031,
  runNotFound: -31032,
  invalidConfiguration: -31040,
  overloaded: -31050,
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
  serverNotInitialized: -32002,
  requestCancelled: -32800,
} as const;

export type ErrorKindName = keyof typeof ERROR_CODES;
