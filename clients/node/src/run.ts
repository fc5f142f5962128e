/** One submit, as its host sees it: events while it runs, then a result. */
import { ClientError, failureOf } from "./errors.js";
import type { AgentEvent, AgentEventParams, Content, RunCompleted, SubmitParams, SubmitResult } from "./protocol.js";

/** What `agent/submit` takes. The answer comes when the run is over, so there is no `wait`. */
export interface SubmitRequest extends Omit<SubmitParams, "wait"> {
  /** Aborting it cancels the run. */
  signal?: AbortSignal | undefined;
}

/** Where a run was left, so that `Sidecar.resume` can go on from there. */
export interface RunPosition {
  sessionId: string;
  runId: string;
  /** Only events with a greater number. Absent: from the first. */
  afterSeq?: number;
}

/** What a run may ask of its sidecar. */
export interface RunControls {
  cancel(runId: string): Promise<boolean>;
  steer(runId: string, prompt: Content): Promise<boolean>;
}

/**
 * A running (or finished) run; `Sidecar.submit` and `Sidecar.resume` make one.
 *
 * Iterate it once for its events, await `result()` for its outcome, in either order or both at once. Events that nobody has
 * read yet are kept until they are read or the run is dropped. Leaving the loop does not cancel the run.
 */
export class Run implements AsyncIterable<AgentEvent> {
  readonly runId: string;
  readonly #controls: RunControls;
  readonly #unread = new Backlog<AgentEventParams>();
  readonly #outcome: Promise<SubmitResult>;
  #settle: { resolve(result: SubmitResult): void; reject(error: ClientError): void };
  #failure: ClientError | undefined;
  #sessionId: string | undefined;
  #lastSeq: number;
  #turnText: string[] = [];
  #isTurnOver = false;
  #completed: RunCompleted | undefined;
  #onCompleted: (completed: RunCompleted) => void = () => undefined;
  #held: AgentEventParams[] | undefined;
  #heardAt = performance.now();

  /** Made by `Sidecar`. */
  constructor(runId: string, sessionId: string | undefined, controls: RunControls, after?: Run | number) {
    this.runId = runId;
    this.#sessionId = sessionId;
    this.#controls = controls;
    this.#lastSeq = after instanceof Run ? after.#lastSeq : (after ?? -1);
    if (after instanceof Run) [this.#turnText, this.#isTurnOver] = [[...after.#turnText], after.#isTurnOver];
    this.#settle = { resolve: () => undefined, reject: () => undefined };
    this.#outcome = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    this.#outcome.catch(() => undefined); // Whoever is interested awaits `result`.
  }

  /** Known from the start when the host named it, else from the first event on. */
  get sessionId(): string | undefined {
    return this.#sessionId;
  }

  /** The number of the last event that came, -1 before the first. */
  get lastSeq(): number {
    return this.#lastSeq;
  }

  /**
   * The outcome, when the run is over. Rejects with RunCancelled, RequestFailed, SidecarExited, BrokenStream, or NoAnswer
   * after a long silence.
   */
  result(): Promise<SubmitResult> {
    return this.#outcome;
  }

  /** The text of the answer, when the run is over; rejects as `result` does. */
  async text(): Promise<string> {
    const { message } = await this.result();
    return message ? textOf(message.content) : this.#turnText.join("");
  }

  /** Its events. Throws as `result` does where no `runCompleted` told of the error. */
  async *[Symbol.asyncIterator](): AsyncGenerator<AgentEvent, void, undefined> {
    for await (const notification of this.notifications()) yield notification.event;
  }

  /** The same events with what surrounds them: `{sessionId, runId, seq, event}`. */
  async *notifications(): AsyncGenerator<AgentEventParams, void, undefined> {
    for (;;) {
      const notification = this.#unread.take() ?? (await this.#unread.next());
      if (notification === undefined) break;
      yield notification;
    }
    if (this.#failure && !this.#completed) throw this.#failure;
  }

  /** Ends the run; false when it was over. Its `result` then rejects with RunCancelled. */
  cancel(): Promise<boolean> {
    return this.#controls.cancel(this.runId);
  }

  /** Says something to the model before its next turn; false when there is none. */
  steer(prompt: Content): Promise<boolean> {
    return this.#controls.steer(this.runId, prompt);
  }

  // For the sidecar's side ----------------------------------------------------------------------------

  /** For how long nothing was heard of this run, in milliseconds. */
  get silenceMs(): number {
    return performance.now() - this.#heardAt;
  }

  /** The last event, once it has come. */
  get completed(): RunCompleted | undefined {
    return this.#completed;
  }

  /** Another `agent/event` of this run; one that was there already is passed over. */
  take(notification: AgentEventParams): void {
    this.#heardAt = performance.now();
    if (this.#held) {
      this.#held.push(notification);
      return;
    }
    if (notification.seq <= this.#lastSeq) {
      if (notification.event.type === "runCompleted") this.#complete(notification.event);
      return;
    }
    this.#lastSeq = notification.seq;
    this.#sessionId = notification.sessionId;
    this.#follow(notification.event);
    this.#unread.add(notification);
  }

  /** Puts aside what comes, until `release` has given what came before it. */
  hold(): void {
    this.#held = [];
  }

  /** Takes these events, then those that were put aside. */
  release(missed: readonly AgentEventParams[]): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const notification of [...missed, ...held]) this.take(notification);
  }

  /** The last event, when it comes. */
  whenCompleted(): Promise<RunCompleted> {
    return new Promise((resolve) => {
      if (this.#completed) resolve(this.#completed);
      else this.#onCompleted = resolve;
    });
  }

  /** The answer to the submit; only the first outcome counts. */
  end(result: SubmitResult): void {
    this.#settle.resolve(result);
    this.#unread.end();
  }

  /** Why there is no answer; only the first outcome counts. */
  fail(error: ClientError): void {
    this.#failure ??= error;
    this.#settle.reject(error);
    this.#unread.end();
  }

  /** Takes the outcome from the last event, where no answer will come. */
  endByEvent(completed: RunCompleted): void {
    const { stopReason, usage, error } = completed;
    if (error) this.fail(failureOf(error));
    else if (stopReason === "cancelled") this.fail(failureOf({ code: -32800, message: "the run was cancelled" }));
    else this.end({ sessionId: this.#sessionId ?? "", runId: this.runId, stopReason, usage });
  }

  #follow(event: AgentEvent): void {
    switch (event.type) {
      case "assistantTextDelta":
        if (this.#isTurnOver) this.#turnText = [];
        this.#isTurnOver = false;
        this.#turnText.push(event.text);
        break;
      case "turnComplete":
        if (this.#isTurnOver) this.#turnText = []; // A turn without a word.
        this.#isTurnOver = true;
        break;
      case "runCompleted":
        this.#complete(event);
        break;
    }
  }

  #complete(event: RunCompleted): void {
    this.#completed = event;
    this.#onCompleted(event);
  }
}

function textOf(content: Content): string {
  if (typeof content === "string") return content;
  return content.map((block) => ("text" in block && typeof block.text === "string" ? block.text : "")).join("");
}

/** What has come and nobody has read yet. */
class Backlog<T> {
  #items: T[] = [];
  #head = 0;
  #ended = false;
  #wake: () => void = () => undefined;

  add(item: T): void {
    if (this.#ended) return;
    this.#items.push(item);
    this.#wake();
  }

  end(): void {
    this.#ended = true;
    this.#wake();
  }

  /** The oldest item; undefined where there is none now. */
  take(): T | undefined {
    if (this.#head === this.#items.length) return undefined;
    const item = this.#items[this.#head++];
    if (this.#head === this.#items.length) [this.#items, this.#head] = [[], 0];
    return item;
  }

  /** The oldest item, as soon as there is one; undefined at the end. */
  async next(): Promise<T | undefined> {
    while (!this.#ended && this.#head === this.#items.length) {
      await new Promise<void>((resolve) => {
        const before = this.#wake;
        this.#wake = () => {
          before();
          resolve();
        };
      });
      this.#wake = () => undefined;
    }
    return this.take();
  }
}
