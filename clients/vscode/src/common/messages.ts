// What the extension and its chat tell each other.

import type { ApprovalDecision } from "agent-sidecar-client/protocol";

import type { Change, Entry } from "./entries";

/** What stands in the way of asking, and what can be done about it. */
export interface Notice {
  text: string;
  tone: "info" | "error";
  actions: { label: string; command: ChatCommand }[];
}

/** The commands that a button of the chat may run: no others. */
export const CHAT_COMMANDS = ["install", "locate", "setKey", "selectModel", "trust", "showLog", "restart", "sessions", "newSession"] as const;
export type ChatCommand = (typeof CHAT_COMMANDS)[number];

/** How the chat stands, beside its entries. */
export interface ChatStatus {
  isRunning: boolean;
  /** Whether something can be asked now. */
  isUsable: boolean;
  model: string;
  attachments: string[];
  notice?: Notice;
  showsReasoning: boolean;
}

export type ToChat =
  | { type: "show"; entries: Entry[]; status: ChatStatus }
  | { type: "changes"; changes: Change[] }
  | { type: "status"; status: ChatStatus }
  | { type: "focus"; on: "prompt" | "question" };

export type FromChat =
  | { type: "ready" }
  | { type: "ask"; text: string }
  | { type: "stop" }
  | { type: "answer"; requestId: string; decision: ApprovalDecision; reason?: string }
  | { type: "showDiff"; requestId: string }
  | { type: "open"; href: string }
  | { type: "attach" }
  | { type: "detach"; index: number }
  | { type: "run"; command: ChatCommand };
