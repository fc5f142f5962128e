// How the events of runs become the entries of a transcript. Pure: events in, changes out.

import type {
  AgentEvent,
  ApprovalRequested,
  Content,
  RequestApprovalParams,
  RunCompleted,
  ToolExecutionCompleted,
  ToolExecutionProgress,
  ToolExecutionStarted,
  TurnComplete,
  Usage,
} from "agent-sidecar-client/protocol";

import type { AnswerEntry, CallEntry, Change, Entry, Question, ThoughtEntry, Tone } from "./entries";
import { duration, escapeHidden, escapeLine, textOf } from "./text";

/** Own choice: what is shown of a result; the model is shown up to `cycle.maxToolResultBytes`. */
const MAX_OUTPUT_CHARACTERS = 20_000;

/** A conversation as it is shown. Tells `onChange` of everything that becomes other than it was. */
export class Transcript {
  readonly entries: Entry[] = [];
  private readonly calls = new Map<string, CallEntry>();
  /** The calls that questions are about, by the ids of the questions. */
  private readonly askedAbout = new Map<string, string>();
  private speaking: AnswerEntry | ThoughtEntry | undefined;
  private nextId = 1;

  constructor(private readonly onChange: (change: Change) => void) {}

  /** The person says something. */
  say(text: string, attachments: string[] = []): void {
    this.hush();
    this.add({ kind: "user", id: this.nextId++, text, attachments });
  }

  /** A line beside the conversation. */
  note(text: string, tone: Tone = "info"): void {
    this.hush();
    this.add({ kind: "note", id: this.nextId++, text: escapeLine(text), tone });
  }

  /** Shows one step of a run; `atMs` is the time it is now, absent for what was kept. */
  apply(event: AgentEvent, atMs?: number): void {
    switch (event.type) {
      case "assistantTextDelta":
        return this.speak("answer", event.text);
      case "assistantReasoningDelta":
        return this.speak("thought", event.text);
      case "toolExecutionStarted":
        return this.callAnnounced(event);
      case "turnComplete":
        return this.turnComplete(event, atMs);
      case "toolExecutionProgress":
        return this.callReports(event);
      case "approvalRequested":
        return this.asked(event);
      case "approvalResolved":
        return this.resolved(event.requestId, atMs);
      case "toolExecutionCompleted":
        return this.callCompleted(event);
      case "retrying":
        return this.note(`${event.reason}; trying again in ${duration(event.delayMs)}`, "warning");
      case "compacted":
        return this.note(`The conversation was made smaller: ${event.afterTokens} instead of ${event.beforeTokens} tokens`);
      case "warning":
        return this.note(event.message, "warning");
      case "runCompleted":
        return this.runCompleted(event);
      case "runStarted":
        return;
    }
  }

  /** A question about a call is to be answered. */
  ask(params: RequestApprovalParams): void {
    if (!this.calls.has(params.callId)) {
      this.callAnnounced({ type: "toolExecutionStarted", ...params });
    }
    this.asked(params);
    this.update(params.callId, { question: questionOf(params) });
  }

  /** A question is over, whoever answered it. */
  resolved(requestId: string, atMs?: number): void {
    const callId = this.askedAbout.get(requestId);
    if (callId !== undefined && this.calls.get(callId)?.state === "asking") {
      this.update(callId, { state: "running", question: undefined, startedMs: atMs });
    }
  }

  /** A result that was kept, in place of the event that told of it. */
  result(callId: string, output: Content, isError: boolean, more: Partial<CallEntry> = {}): void {
    this.update(callId, { state: isError ? "failed" : "done", output: shownOutput(output), question: undefined, ...more });
  }

  /** Nobody speaks any more: what streams in next begins an entry of its own. */
  hush(): void {
    const entry = this.speaking;
    this.speaking = undefined;
    if (entry) {
      entry.isStreaming = false;
      this.onChange({ kind: "entry", entry });
    }
  }

  /** Takes everything away. */
  clear(): void {
    this.entries.length = 0;
    this.calls.clear();
    this.askedAbout.clear();
    this.speaking = undefined;
    this.onChange({ kind: "clear" });
  }

  private speak(kind: "answer" | "thought", text: string): void {
    if (this.speaking?.kind === kind) {
      this.speaking.text += text;
      this.onChange({ kind: "append", id: this.speaking.id, text });
      return;
    }
    this.hush();
    const entry: AnswerEntry | ThoughtEntry = { kind, id: this.nextId++, text, isStreaming: true };
    this.speaking = entry;
    this.add(entry);
  }

  private callAnnounced({ callId, toolName, input }: ToolExecutionStarted): void {
    this.hush();
    const call: CallEntry = { kind: "call", id: this.nextId++, callId, toolName: escapeLine(toolName), input, state: "waiting" };
    this.calls.set(callId, call);
    this.add(call);
  }

  private turnComplete(event: TurnComplete, atMs: number | undefined): void {
    this.hush();
    if (event.reason !== "toolCalls") {
      return;
    }
    for (const call of this.calls.values()) {
      if (call.state === "waiting") {
        this.update(call.callId, { state: "running", startedMs: atMs });
      }
    }
  }

  private asked({ requestId, callId }: Pick<ApprovalRequested, "requestId" | "callId">): void {
    this.askedAbout.set(requestId, callId);
    this.update(callId, { state: "asking" });
  }

  private callReports({ callId, done, total, message }: ToolExecutionProgress): void {
    this.update(callId, {
      progress: { done: done ?? undefined, total: total ?? undefined, message: message == null ? undefined : escapeLine(message) },
    });
  }

  private callCompleted(event: ToolExecutionCompleted): void {
    this.result(event.callId, event.output, event.isError, {
      durationMs: event.durationMs,
      errorKind: event.errorKind ?? undefined,
      progress: undefined,
    });
  }

  private runCompleted({ stopReason, error, usage }: RunCompleted): void {
    this.hush();
    for (const call of this.calls.values()) {
      if (call.question) {
        this.update(call.callId, { question: undefined });
      }
    }
    const [text, tone] = ending(stopReason, usage, error ?? undefined);
    this.note(text, tone);
  }

  private add(entry: Entry): void {
    this.entries.push(entry);
    this.onChange({ kind: "entry", entry });
  }

  private update(callId: string, change: Partial<CallEntry>): void {
    const call = this.calls.get(callId);
    if (call) {
      Object.assign(call, change);
      this.onChange({ kind: "entry", entry: call });
    }
  }
}

/** Why a run failed: in words, and as a word of the protocol, by which it is found in the documentation. */
interface Failure {
  message: string;
  data?: { kind?: string | null } | null;
}

/** How a run ended, in a line. */
export function ending(stopReason: RunCompleted["stopReason"], usage?: Usage, failure?: Failure): [string, Tone] {
  switch (stopReason) {
    case "stop":
      return [`${usage?.inputTokens ?? 0} tokens in, ${usage?.outputTokens ?? 0} out`, "info"];
    case "cancelled":
      return ["Stopped", "info"];
    case "length":
      return ["Cut off: the answer reached its limit", "warning"];
    case "contentFilter":
      return ["Cut off by the provider's content filter", "warning"];
    case "error":
      return [`Failed: ${reason(failure)}`, "error"];
    default: // A reason that only a later sidecar knows.
      return failure ? [`Failed: ${reason(failure)}`, "error"] : [`Ended: ${escapeLine(String(stopReason))}`, "info"];
  }
}

function reason(failure: Failure | undefined): string {
  if (!failure) {
    return "no reason was given; see the log";
  }
  const kind = failure.data?.kind;
  return kind ? `${failure.message} (${kind})` : failure.message;
}

function shownOutput(output: Content): string {
  const text = escapeHidden(textOf(output)).trimEnd();
  const left = text.length - MAX_OUTPUT_CHARACTERS;
  return left > 0 ? `${text.slice(0, MAX_OUTPUT_CHARACTERS)}\n… ${left} more characters` : text;
}

function questionOf(params: RequestApprovalParams): Question {
  return {
    requestId: params.requestId,
    title: escapeLine(params.title),
    reason: escapeLine(params.reason),
    permissions: params.permissions.map(escapeLine),
    options: params.options.map(({ decision, label, rule }) => ({ decision, label: escapeLine(label), rule: rule ?? undefined })),
    diff: params.diff == null ? undefined : escapeHidden(params.diff),
  };
}
