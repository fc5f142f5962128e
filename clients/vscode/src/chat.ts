// A conversation: its session, its run and its transcript. There can be several at once.

import { randomUUID } from "node:crypto";

import type { AgentEventParams, Content, RequestApprovalParams } from "agent-sidecar-client/protocol";
import * as vscode from "vscode";

import type { Attachment } from "./attachments";
import { historyOf } from "./common/history";
import type { Change } from "./common/entries";
import { ending, Transcript } from "./common/transcript";
import { kindOf, messageOf } from "./errors";
import type { Life } from "./life";
import type { Sidecar } from "./sidecar";

/** Own choice: a sidecar that has not ended a run in this time after it was asked to is ended itself. */
const STOP_LIMIT_MS = 5_000;

interface Run {
  id: string;
  /** The number of the last event that was shown; -1: none yet. */
  lastSeq: number;
  /** The life of the sidecar that it was sent to; none while it waits for one. */
  life?: Life;
}

interface Said {
  content: Content;
}

export class Chat implements vscode.Disposable {
  readonly transcript: Transcript;
  sessionId: string | undefined;
  title = "New chat";
  /** What goes along with the next prompt. */
  attachments: Attachment[] = [];
  private readonly changed = new vscode.EventEmitter<Change>();
  private readonly statusChanged = new vscode.EventEmitter<void>();
  readonly onChange = this.changed.event;
  /** Its run, session, title or attachments are other than before. */
  readonly onStatusChanged = this.statusChanged.event;
  private run: Run | undefined;
  private unsaid: Said[] = [];

  constructor(
    private readonly sidecar: Sidecar,
    private readonly model: () => string | undefined,
  ) {
    this.transcript = new Transcript((change) => this.changed.fire(change));
  }

  get isRunning(): boolean {
    return this.run !== undefined;
  }

  get isEmpty(): boolean {
    return this.transcript.entries.length === 0;
  }

  get runId(): string | undefined {
    return this.run?.id;
  }

  attach(attachment: Attachment): void {
    this.attachments.push(attachment);
    this.statusChanged.fire();
  }

  detach(index: number): void {
    this.attachments.splice(index, 1);
    this.statusChanged.fire();
  }

  /** Says something: starts a run, or joins the one that goes on. */
  async ask(text: string): Promise<void> {
    const attached = this.attachments;
    this.attachments = [];
    if (this.isEmpty) {
      this.title = text.split("\n", 1)[0]?.slice(0, 60) ?? this.title;
    }
    this.transcript.say(text, attached.map((each) => each.name));
    const blocks = attached.map((each) => ({ type: "text" as const, text: each.text }));
    await this.say({ content: blocks.length === 0 ? text : [{ type: "text", text }, ...blocks] });
  }

  /** Ends the run that goes on. If the sidecar does not, its process is ended. */
  async stop(): Promise<void> {
    const run = this.run;
    this.unsaid = [];
    if (!run) {
      return;
    }
    if (run.life === undefined) {
      this.ended("Stopped", "info"); // It was never sent.
      return;
    }
    const limit = setTimeout(() => {
      if (this.run === run) {
        this.transcript.note("The run did not end; the sidecar is ended instead", "warning");
        this.sidecar.kill();
      }
    }, STOP_LIMIT_MS);
    try {
      const { cancelled } = await this.sidecar.request("agent/cancel", { runId: run.id });
      if (!cancelled && this.run === run && run.lastSeq < 0) {
        this.ended("Stopped", "info");
      }
    } catch (error) {
      this.transcript.note(messageOf(error), "error");
    }
    void limit; // It ends by itself, and does nothing where the run is over.
  }

  /** Shows an event of its run, unless it was shown before. */
  receive({ runId, seq, sessionId, event }: AgentEventParams): void {
    const run = this.run;
    if (!run || run.id !== runId || seq <= run.lastSeq) {
      return;
    }
    run.lastSeq = seq;
    this.setSession(sessionId);
    if (event.type === "runCompleted") {
      this.run = undefined;
    }
    this.transcript.apply(event, Date.now());
    if (event.type === "runCompleted") {
      this.afterRun();
    }
  }

  /** A question about a call of its run. */
  question(params: RequestApprovalParams): void {
    this.transcript.ask(params);
  }

  /** Asks for the events of the run since the last that was shown: the sidecar was started again. */
  async catchUp(): Promise<void> {
    const run = this.run;
    if (!run || run.life === undefined || run.life === this.sidecar.life) {
      return;
    }
    let failure: unknown = new Error("the sidecar ended before the run began; ask again");
    try {
      if (this.sessionId) {
        const afterSeq = run.lastSeq >= 0 ? run.lastSeq : undefined;
        const { events } = await this.sidecar.request("session/events", { sessionId: this.sessionId, runId: run.id, afterSeq });
        events.forEach((event) => this.receive(event));
      }
    } catch (error) {
      failure = error;
      if (kindOf(error) === "sessionNotFound") {
        this.sessionId = undefined;
      }
    }
    if (this.run === run) {
      this.failed(failure);
    }
  }

  /** The sidecar is gone for good: no run goes on. */
  abandon(reason: string): void {
    if (this.run) {
      this.failed(new Error(reason));
    }
  }

  /** Shows a session that was kept, in place of what is shown. */
  async load(sessionId: string): Promise<void> {
    const session = await this.sidecar.request("session/get", { sessionId });
    const { events } = await this.sidecar.request("session/events", { sessionId });
    this.transcript.clear();
    this.title = session.title ?? this.title;
    historyOf(session.messages, events, this.transcript);
    this.setSession(sessionId);
    this.statusChanged.fire();
  }

  dispose(): void {
    this.changed.dispose();
    this.statusChanged.dispose();
  }

  private async say(said: Said): Promise<void> {
    if (this.run) {
      await this.steer(this.run, said);
    } else {
      await this.submit(said);
    }
  }

  private async submit({ content }: Said): Promise<void> {
    const run: Run = { id: `vscode-${randomUUID()}`, lastSeq: -1 };
    this.run = run;
    this.statusChanged.fire();
    try {
      await this.sidecar.start();
      if (this.run !== run) {
        return; // Stopped before there was a sidecar.
      }
      run.life = this.sidecar.life;
      // Answered at once: how the run ends is told by its events, also after the sidecar was started again.
      const result = await this.sidecar.request("agent/submit", {
        prompt: content,
        sessionId: this.sessionId,
        runId: run.id,
        model: this.model(),
        wait: false,
      });
      this.setSession(result.sessionId);
    } catch (error) {
      if (this.run === run && run.life !== undefined && run.life !== this.sidecar.life) {
        return; // It died on the way; `catchUp` says how the run fared.
      }
      if (this.run === run) {
        this.failed(error);
      }
    }
  }

  private async steer(run: Run, said: Said): Promise<void> {
    const accepted = await this.sidecar.request("agent/steer", { runId: run.id, prompt: said.content }).then(
      (result) => result.accepted,
      () => false,
    );
    if (accepted) {
      return;
    }
    // The run had just ended, has not begun, or is in its last turn.
    if (this.run) {
      this.unsaid.push(said);
    } else {
      await this.submit(said);
    }
  }

  private setSession(sessionId: string): void {
    if (this.sessionId !== sessionId) {
      this.sessionId = sessionId;
      this.statusChanged.fire();
    }
  }

  private failed(error: unknown): void {
    this.ended(...ending("error", undefined, { message: messageOf(error), data: { kind: kindOf(error) } }));
  }

  private ended(...[text, tone]: Parameters<Transcript["note"]>): void {
    this.run = undefined;
    this.transcript.note(text, tone);
    this.afterRun();
  }

  private afterRun(): void {
    this.statusChanged.fire();
    const unsaid = this.unsaid;
    this.unsaid = [];
    for (const said of unsaid) {
      void this.say(said);
    }
  }
}
