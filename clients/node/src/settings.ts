/** What a host brings along: options, callbacks, tools, limits. */
import type {
  ApprovalDecision,
  HostTool,
  JsonObject,
  ModelCompleteParams,
  ModelCompleteResult,
  RequestApprovalParams,
  RequestApprovalResult,
  RequestInputParams,
} from "./protocol.js";

export type Awaitable<T> = T | PromiseLike<T>;

/** How long anything is waited for, in milliseconds. */
export interface Limits {
  /** From the spawn to the answer to `initialize`. */
  startMs: number;
  /** For an answer, unless the request says otherwise. */
  requestMs: number;
  /** For the next event of a run. People answer approvals meanwhile, and some tools take their time. */
  runSilenceMs: number;
  /**
   * For the answer to `shutdown`, and at each step that ends the process: its stdin closed (after which the protocol
   * gives it five seconds), SIGTERM, SIGKILL.
   */
  exitMs: number;
}

export const DEFAULT_LIMITS: Limits = {
  startMs: 30_000,
  requestMs: 60_000,
  runSilenceMs: 3_600_000,
  exitMs: 5_000,
};

/** One question of the sidecar, beside what it asks. */
export interface QuestionContext {
  /** Aborted when the question is withdrawn, its deadline passes, or the sidecar is gone. */
  readonly signal: AbortSignal;
}

/** One call of a tool of the host's, beside its arguments. */
export interface ToolContext extends QuestionContext {
  readonly callId: string;
  readonly sessionId: string | undefined;
  readonly runId: string | undefined;
  /** Tells how far the tool is; shown to people, not to the model. */
  progress(report: { done?: number; total?: number; message?: string }): void;
}

/** A function of the host that a model may call. What it throws is told to the model. */
export interface RunnableTool extends HostTool {
  run(input: JsonObject, context: ToolContext): unknown;
}

/** One request to a model of the host's. */
export interface ModelContext extends QuestionContext {
  /** Streams a piece of the answer's text; the answer holds all of it again. */
  delta(text: string): void;
}

/** An answer of a model: whole, as its text, or as pieces of text that are streamed as they come. */
export type ModelReply = Awaitable<ModelCompleteResult | string> | AsyncIterable<string>;

/** Callbacks and tools. Without a callback the sidecar is told that this host cannot do the thing. */
export interface HostSettings {
  /** May this call run? A decision, or a whole result. */
  onApproval?: (
    question: RequestApprovalParams,
    context: QuestionContext,
  ) => Awaitable<ApprovalDecision | RequestApprovalResult>;
  /** A question to a person: the content, undefined or null to decline, or a whole result. */
  onInput?: (question: RequestInputParams, context: QuestionContext) => unknown;
  /** Lends a model: used by runs whose model is `host/NAME`. */
  onModel?: (request: ModelCompleteParams, context: ModelContext) => ModelReply;
  /** Tools that the model may call, from the start. */
  tools?: readonly RunnableTool[];
  /** Answers to further requests of the sidecar's, by method; they outweigh the callbacks above. */
  answerers?: Readonly<Record<string, Answerer>>;
  /** Event types that are not wanted. */
  optOutEvents?: readonly string[];
  limits?: Partial<Limits>;
}

/** Answers one method of the sidecar: params in, result out. */
export type Answerer = (params: never, context: QuestionContext) => unknown;

/** For a sidecar that shakes hands with this library, rather than with an LSP client. */
export interface ConnectSettings extends HostSettings {
  /** The protocol's `initializationOptions`. */
  options?: JsonObject;
  /** The workspace's first folder. Default: the folder of this process. */
  cwd?: string;
  /** Default: this library. */
  clientInfo?: { name: string; version?: string };
}

/** For a process of its own. */
export interface SpawnSettings extends ConnectSettings {
  /** What to run, with its arguments. Default: `agent-sidecar`. */
  command?: readonly [program: string, ...args: string[]];
  /** Its environment, whole. Default: that of this process. */
  env?: NodeJS.ProcessEnv;
  /** Called with each line that the process writes to stderr. */
  onStderr?: (line: string) => void;
}
