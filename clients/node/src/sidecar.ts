/** Sidecar: spawn it (or use a connection that is there), talk to it, end it. */
import { randomBytes } from "node:crypto";
import { resolve } from "node:path";
import type { Readable, Writable } from "node:stream";

import { timerMs } from "./conversation.js";
import { ClientError, NoAnswer, RequestFailed, RunCancelled } from "./errors.js";
import { describedBy, type ServerDescription } from "./handshake.js";
import { Link, type LinkUser } from "./link.js";
import type {
  AgentEventParams,
  Content,
  HostRequests,
  HostTool,
  SidecarNotifications,
  SubmitResult,
} from "./protocol.js";
import { answerersOf } from "./questions.js";
import { Run, type RunControls, type RunPosition, type SubmitRequest } from "./run.js";
import {
  type ConnectSettings,
  DEFAULT_LIMITS,
  type HostSettings,
  type Limits,
  type RunnableTool,
  type SpawnSettings,
} from "./settings.js";
import type { Disposable, Wire } from "./wire.js";

/** How long one request is waited for. */
export interface RequestOptions {
  limitMs?: number;
  /** Aborting it withdraws the request, which then rejects with the signal's reason. */
  signal?: AbortSignal;
}

type ParamsOf<M extends keyof HostRequests> = HostRequests[M]["params"];
type ResultOf<M extends keyof HostRequests> = HostRequests[M]["result"];
type RequestArguments<P> = object extends P ? [params?: P, options?: RequestOptions] : [params: P, options?: RequestOptions];

/** A sidecar and the conversation with it; `spawn`, `connect` and `attach` make one, `close` ends it. */
export class Sidecar implements AsyncDisposable {
  readonly #limits: Limits;
  readonly #tools: Map<string, RunnableTool>;
  readonly #runs = new Map<string, Run>();
  readonly #listeners = new Map<string, Set<(params: never) => void>>();
  readonly #exitListeners = new Set<(reason: ClientError) => void>();
  readonly #user: LinkUser;
  readonly #respawn: (() => Promise<Link>) | undefined;
  #link: Link | undefined;
  #restarting: Promise<Link> | undefined;
  #server: ServerDescription = { protocolVersion: "", methods: [], events: [], models: [] };

  /**
   * Starts a process of its own and shakes hands with it. Rejects with CannotStart, SidecarExited, BrokenStream, NoAnswer,
   * or RequestFailed for wrong options.
   */
  static async spawn(settings: SpawnSettings = {}): Promise<Sidecar> {
    const placed = { ...settings, cwd: resolve(settings.cwd ?? ".") };
    const sidecar = new Sidecar(placed, () => sidecar.#open(() => Link.spawn(placed, sidecar.#user), placed));
    await sidecar.restart();
    return sidecar;
  }

  /** Shakes hands over streams that lead to a sidecar; `input` is what it writes. Closing ends `output`. */
  static async connect(input: Readable, output: Writable, settings: ConnectSettings = {}): Promise<Sidecar> {
    const placed = { ...settings, cwd: resolve(settings.cwd ?? ".") };
    const sidecar = new Sidecar(placed);
    await sidecar.#open(async () => Link.over(input, output, sidecar.#user), placed);
    return sidecar;
  }

  /**
   * Joins a connection that is there, such as the `LanguageClient` of vscode-languageclient, which starts, initializes and
   * stops the sidecar: `hostCapabilities` says what its `initialize` has to announce. Closing leaves the connection open.
   * When it was lost and opened again, close this one and attach another.
   */
  static async attach(wire: Wire & { initializeResult?: unknown }, settings: HostSettings = {}): Promise<Sidecar> {
    const sidecar = new Sidecar(settings);
    await sidecar.#open(async () => Link.joined(wire, sidecar.#user));
    if (wire.initializeResult) sidecar.#server = describedBy(wire.initializeResult);
    return sidecar;
  }

  private constructor(settings: HostSettings, respawn?: () => Promise<Link>) {
    this.#limits = { ...DEFAULT_LIMITS, ...settings.limits };
    this.#tools = new Map(settings.tools?.map((tool) => [tool.name, tool]));
    this.#respawn = respawn;
    this.#user = {
      answerers: answerersOf(settings, this.#tools, (method, params) => this.notify(method, params)),
      takeEvent: (params) => this.#takeEvent(params),
      lost: (reason) => this.#emit(this.#exitListeners, reason),
    };
  }

  /** What the sidecar said of itself. */
  get server(): ServerDescription {
    return this.#server;
  }

  /** Of the process that was spawned; undefined where it was not. */
  get pid(): number | undefined {
    return this.#link?.process?.pid;
  }

  /** The last lines that the process wrote to stderr. */
  get stderrTail(): string {
    return this.#link?.process?.stderrTail ?? "";
  }

  /** Why nothing will come any more; undefined while the sidecar is there. */
  get lost(): ClientError | undefined {
    return this.#link?.conversation.lost;
  }

  // To the sidecar ------------------------------------------------------------------------------------

  /** Starts a run at once, in a new session unless one is named. What goes wrong is told by the run. */
  submit(request: Content | SubmitRequest): Run {
    const isPrompt = typeof request === "string" || Array.isArray(request);
    const { signal, ...params }: SubmitRequest = isPrompt ? { prompt: request } : request;
    const runId = params.runId ?? randomBytes(16).toString("hex");
    const run = this.#follow(new Run(runId, params.sessionId ?? undefined, this.#controls));
    void this.#settle(run, async (silence) => {
      if (signal?.aborted) throw new RunCancelled();
      const cancel = (): void => void run.cancel().catch(() => undefined);
      signal?.addEventListener("abort", cancel);
      try {
        run.end((await this.#ask("agent/submit", { ...params, runId }, { signal: silence })) as SubmitResult);
      } finally {
        signal?.removeEventListener("abort", cancel);
      }
    });
    return run;
  }

  /**
   * Goes on with a run whose events were missed, in this process or an earlier one: those after `afterSeq`, then what
   * still comes. A run that a process took with it is ended by the next sidecar, and its last event says so.
   */
  resume(from: Run | RunPosition): Run {
    const { sessionId, runId } = from;
    const run = this.#follow(new Run(runId, sessionId, this.#controls, from instanceof Run ? from : from.afterSeq));
    void this.#settle(run, (silence) => this.#catchUp(run, silence));
    return run;
  }

  /** Any method of the protocol. Rejects with RequestFailed, NoAnswer, SidecarExited or BrokenStream. */
  async request<M extends keyof HostRequests>(
    method: M,
    ...[params, options]: RequestArguments<ParamsOf<M>>
  ): Promise<ResultOf<M>> {
    return (await this.#ask(method, params ?? {}, { limitMs: this.#limits.requestMs, ...options })) as ResultOf<M>;
  }

  /** Any notification, of the protocol or of LSP; without effect once the sidecar is lost. */
  notify(method: string, params: object = {}): void {
    this.#link?.conversation.notify(method, params);
  }

  /** Offers more tools, from the next turn on. Rejects with RequestFailed when a name is taken. */
  async registerTools(...tools: RunnableTool[]): Promise<void> {
    await this.request("tools/register", { tools: tools.map(definition) });
    for (const tool of tools) this.#tools.set(tool.name, tool);
  }

  /** Takes tools back, from the next turn on. */
  async unregisterTools(...names: string[]): Promise<void> {
    await this.request("tools/unregister", { names });
    for (const name of names) this.#tools.delete(name);
  }

  // From the sidecar ----------------------------------------------------------------------------------

  /** Hears notifications of one method, `agent/event` of every run included, until it is disposed of. */
  onNotification<M extends keyof SidecarNotifications>(
    method: M,
    listener: (params: SidecarNotifications[M]["params"]) => void,
  ): Disposable;
  onNotification(method: string, listener: (params: never) => void): Disposable;
  onNotification(method: string, listener: (params: never) => void): Disposable {
    const listeners = this.#listeners.get(method) ?? new Set();
    if (!this.#listeners.has(method)) {
      this.#listeners.set(method, listeners);
      if (this.#link) this.#listen(this.#link, method);
    }
    listeners.add(listener);
    return { dispose: () => listeners.delete(listener) };
  }

  /** Hears when the sidecar is lost, with the reason, unless it was closed. */
  onExit(listener: (reason: ClientError) => void): Disposable {
    this.#exitListeners.add(listener);
    return { dispose: () => this.#exitListeners.delete(listener) };
  }

  // Beginning and end ---------------------------------------------------------------------------------

  /** Ends the process where it still runs, and spawns another with the same settings, tools and listeners. */
  async restart(): Promise<void> {
    const respawn = this.#respawn;
    if (!respawn) throw new ClientError("only a sidecar that was spawned can be restarted");
    // Who asks while one is on its way shares it.
    this.#restarting ??= this.close()
      .then(respawn)
      .finally(() => (this.#restarting = undefined));
    await this.#restarting;
  }

  /** Ends what runs, then the connection, and the process with everything it has started. */
  async close(): Promise<void> {
    await this.#link?.end(this.#limits.exitMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Ends the process and its group at once; what waits rejects with SidecarExited. `close` is still due. */
  kill(): void {
    this.#link?.process?.killTree();
  }

  async #open(link: () => Promise<Link>, settings?: ConnectSettings): Promise<Link> {
    const opened = (this.#link = await link());
    try {
      if (settings) this.#server = await opened.shakeHands(settings, this.#limits.startMs);
      for (const method of this.#listeners.keys()) this.#listen(opened, method);
      if (this.#tools.size > 0) await this.registerTools(...this.#tools.values());
    } catch (error) {
      await opened.end(this.#limits.exitMs);
      throw error;
    }
    return opened;
  }

  // Runs ----------------------------------------------------------------------------------------------

  get #controls(): RunControls {
    return {
      cancel: async (runId) => (await this.request("agent/cancel", { runId })).cancelled,
      steer: async (runId, prompt) => (await this.request("agent/steer", { runId, prompt })).accepted,
    };
  }

  #follow(run: Run): Run {
    if (this.#runs.has(run.runId)) throw new ClientError(`a run ${JSON.stringify(run.runId)} is followed already`);
    this.#runs.set(run.runId, run);
    return run;
  }

  /** Does what ends the run; whatever goes wrong, or a silence that is too long, ends it too. */
  async #settle(run: Run, work: (silence: AbortSignal) => Promise<void>): Promise<void> {
    const watch = new SilenceWatch(run, this.#limits.runSilenceMs);
    try {
      await work(watch.signal);
    } catch (error) {
      // Its last event came, and no answer after it: the event says how it ended.
      if (run.completed && !(error instanceof RequestFailed)) run.endByEvent(run.completed);
      else run.fail(error instanceof ClientError ? error : new ClientError(String(error)));
    } finally {
      watch.stop();
      this.#runs.delete(run.runId);
    }
  }

  async #catchUp(run: Run, silence: AbortSignal): Promise<void> {
    const { runId, sessionId, lastSeq } = run;
    if (sessionId === undefined) throw new ClientError(`nothing was heard of run ${runId}; submit it again`);
    run.hold();
    // The last event that was seen comes again: it says whether the run was over then.
    const after = lastSeq > 0 ? { afterSeq: lastSeq - 1 } : {};
    const missed = await this.request("session/events", { sessionId, runId, ...after });
    run.release(missed.events);
    // Its last event may come while the sidecar is asked.
    if (!run.completed && !(await this.#isRunning(sessionId, runId)) && !run.completed) {
      throw new ClientError(`run ${runId} does not go on in session ${sessionId}`);
    }
    const conversation = this.#conversation;
    run.endByEvent(await conversation.wait(() => run.whenCompleted(), { signal: silence }));
  }

  async #isRunning(sessionId: string, runId: string): Promise<boolean> {
    const { runs } = await this.request("session/get", { sessionId });
    return runs.some((run) => run.runId === runId && run.status === "running");
  }

  #takeEvent(params: unknown): void {
    const notification = params as AgentEventParams;
    if (typeof notification?.event !== "object" || notification.event === null) return;
    this.#runs.get(notification.runId)?.take(notification);
    const listeners = this.#listeners.get("agent/event");
    if (listeners) this.#emit(listeners, notification);
  }

  // ---------------------------------------------------------------------------------------------------

  get #conversation(): Link["conversation"] {
    if (!this.#link) throw new ClientError("the sidecar has not been started");
    return this.#link.conversation;
  }

  async #ask(method: string, params: object, { limitMs, signal }: RequestOptions): Promise<unknown> {
    const patience = limitMs === undefined ? {} : { limitMs, tooLate: () => new NoAnswer(method, limitMs) };
    return await this.#conversation.ask(method, params, { ...patience, signal });
  }

  #listen(link: Link, method: string): void {
    if (method === "agent/event") return; // Its way is another, see frames.ts.
    link.conversation.listen(method, (params) => this.#emit(this.#listeners.get(method) ?? [], params));
  }

  /** A listener that throws is the host's mistake, and must stop neither the others nor the reading. */
  #emit(listeners: Iterable<(params: never) => void>, params: unknown): void {
    for (const listener of listeners) {
      try {
        listener(params as never);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}

/** What `tools/register` takes of a tool. */
function definition({ run: _, ...tool }: RunnableTool): HostTool {
  return tool;
}

/** Aborts its signal when nothing was heard of a run for too long. */
class SilenceWatch {
  readonly #run: Run;
  readonly #limitMs: number;
  readonly #controller = new AbortController();
  #timer: NodeJS.Timeout;

  constructor(run: Run, limitMs: number) {
    this.#run = run;
    this.#limitMs = limitMs;
    this.#timer = this.#look(limitMs);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #look(inMs: number): NodeJS.Timeout {
    return setTimeout(() => {
      const leftMs = this.#limitMs - this.#run.silenceMs;
      if (leftMs > 0) this.#timer = this.#look(leftMs);
      else this.#controller.abort(new NoAnswer("agent/submit", this.#limitMs));
    }, timerMs(inMs));
  }
}
