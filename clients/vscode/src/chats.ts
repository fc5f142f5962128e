// The chats of this window, and which of them is shown.

import type { AgentEventParams } from "agent-sidecar-client/protocol";
import * as vscode from "vscode";

import { Chat } from "./chat";
import { messageOf } from "./errors";
import type { Sidecar } from "./sidecar";

const KEPT_SESSION = "session";

export class Chats implements vscode.Disposable {
  private readonly currentChanged = new vscode.EventEmitter<Chat>();
  private readonly statusChanged = new vscode.EventEmitter<void>();
  /** Another chat is shown than before. */
  readonly onCurrentChanged = this.currentChanged.event;
  /** A chat began or ended a run, or its session is known now. */
  readonly onStatusChanged = this.statusChanged.event;
  private readonly all = new Set<Chat>();
  private shown: Chat;
  private isRestored = false;

  constructor(
    private readonly sidecar: Sidecar,
    private readonly model: () => string | undefined,
    private readonly memento: vscode.Memento,
  ) {
    this.shown = this.add();
    sidecar.onRestarted(() => this.all.forEach((chat) => void chat.catchUp()));
    sidecar.onStateChanged((state) => {
      if (state.kind === "failed" || state.kind === "missing") {
        const reason = state.kind === "failed" ? state.message : "agent-sidecar was not found";
        this.all.forEach((chat) => chat.abandon(reason));
      }
    });
  }

  get current(): Chat {
    return this.shown;
  }

  get running(): Chat[] {
    return [...this.all].filter((chat) => chat.isRunning);
  }

  /** Those with a session, in the order in which they began. */
  get open(): Chat[] {
    return [...this.all].filter((chat) => chat.sessionId !== undefined);
  }

  ofRun(runId: string | null | undefined): Chat | undefined {
    return [...this.all].find((chat) => chat.runId === runId && runId != null);
  }

  receive(event: AgentEventParams): void {
    this.ofRun(event.runId)?.receive(event);
  }

  /** A question is over, by a person's answer or without one. */
  resolved(requestId: string): void {
    this.all.forEach((chat) => chat.transcript.resolved(requestId, Date.now()));
  }

  /** Shows an empty chat. A run of the one before goes on. */
  begin(): Chat {
    if (!this.shown.isEmpty) {
      this.show(this.add());
    }
    return this.shown;
  }

  /** Shows a session: the chat that has it, or a new one with what was kept. */
  async resume(sessionId: string): Promise<Chat> {
    const open = [...this.all].find((chat) => chat.sessionId === sessionId);
    if (open) {
      this.show(open);
      return open;
    }
    const chat = this.add();
    try {
      await chat.load(sessionId);
    } catch (error) {
      this.remove(chat);
      throw error;
    }
    this.show(chat);
    return chat;
  }

  /** Shows the session that this window showed last, once. */
  async restore(): Promise<void> {
    const sessionId = this.memento.get<string>(KEPT_SESSION);
    if (this.isRestored || !sessionId || !this.shown.isEmpty) {
      return;
    }
    this.isRestored = true;
    try {
      await this.resume(sessionId);
    } catch (error) {
      await this.memento.update(KEPT_SESSION, undefined);
      this.shown.transcript.note(`The last conversation cannot be shown: ${messageOf(error)}`, "warning");
    }
  }

  dispose(): void {
    this.all.forEach((chat) => chat.dispose());
    this.currentChanged.dispose();
    this.statusChanged.dispose();
  }

  private add(): Chat {
    const chat = new Chat(this.sidecar, this.model);
    this.all.add(chat);
    chat.onStatusChanged(() => {
      if (chat === this.shown && this.sidecar.state.kind === "ready") {
        void this.memento.update(KEPT_SESSION, chat.sessionId);
      }
      this.statusChanged.fire();
    });
    return chat;
  }

  private show(chat: Chat): void {
    this.shown = chat;
    for (const other of this.all) {
      if (other !== chat && !other.isRunning) {
        this.remove(other); // Kept in the store; `resume` brings it back.
      }
    }
    void this.memento.update(KEPT_SESSION, chat.sessionId);
    this.currentChanged.fire(chat);
    this.statusChanged.fire();
  }

  private remove(chat: Chat): void {
    this.all.delete(chat);
    chat.dispose();
  }
}
