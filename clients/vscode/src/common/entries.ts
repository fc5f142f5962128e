// What a conversation looks like: the entries of a transcript, from top to bottom. Data alone.

import type { ApprovalDecision, JsonObject, PermissionRule } from "agent-sidecar-client/protocol";

export type Entry = UserEntry | AnswerEntry | ThoughtEntry | CallEntry | NoteEntry;

/** What the person said, and what went along with it. */
export interface UserEntry {
  kind: "user";
  id: number;
  text: string;
  attachments: string[];
}

/** What the model said, in Markdown. It grows while `isStreaming`. */
export interface AnswerEntry {
  kind: "answer";
  id: number;
  text: string;
  isStreaming: boolean;
}

/** What the model thought before it answered. */
export interface ThoughtEntry {
  kind: "thought";
  id: number;
  text: string;
  isStreaming: boolean;
}

export type CallState = "waiting" | "asking" | "running" | "done" | "failed";

/** A call of a tool. */
export interface CallEntry {
  kind: "call";
  id: number;
  callId: string;
  toolName: string;
  input: JsonObject;
  state: CallState;
  /** When it began to run, in milliseconds since the epoch; absent for what was kept. */
  startedMs?: number;
  durationMs?: number;
  progress?: CallProgress;
  output?: string;
  /** Why it failed, as a word of the protocol. */
  errorKind?: string;
  question?: Question;
}

export interface CallProgress {
  done?: number;
  total?: number;
  message?: string;
}

/** May this call run? */
export interface Question {
  requestId: string;
  title: string;
  reason: string;
  permissions: string[];
  options: QuestionOption[];
  diff?: string;
}

export interface QuestionOption {
  decision: ApprovalDecision;
  label: string;
  /** Exactly what is remembered when it is taken. */
  rule?: PermissionRule;
}

export type Tone = "info" | "warning" | "error";

/** A line beside the conversation. */
export interface NoteEntry {
  kind: "note";
  id: number;
  text: string;
  tone: Tone;
}

/** One change of a transcript: an entry that is new or other than before, text that joins one, or all is gone. */
export type Change = { kind: "entry"; entry: Entry } | { kind: "append"; id: number; text: string } | { kind: "clear" };
