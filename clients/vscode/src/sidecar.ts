// The sidecar of this window: started when first needed, started again when it dies.

import type { ClientError } from "agent-sidecar-client";
import type { HostRequests } from "agent-sidecar-client/protocol";
import * as vscode from "vscode";

import { messageOf } from "./errors";
import { Life, type Launch, type Services } from "./life";

/** Own choice: a sidecar that ends by itself more often than so within a minute is not started again. */
const MAX_CRASHES = 3;
const CRASH_WINDOW_MS = 60_000;
/** Own choice: servers may take a minute to start, and a person may have to sign in. */
const REQUEST_LIMIT_MS = 10 * 60_000;
/** A sidecar is gone within 5 s of its end being asked for: protocol.md, ground rule 7.1. */
const STOP_LIMIT_MS = 5_000;

export type SidecarState =
  | { kind: "stopped" }
  | { kind: "starting" }
  | { kind: "ready" }
  | { kind: "missing" }
  | { kind: "failed"; message: string };

export class Sidecar implements vscode.Disposable {
  private readonly stateChanged = new vscode.EventEmitter<SidecarState>();
  private readonly restarted = new vscode.EventEmitter<void>();
  private readonly lost = new vscode.EventEmitter<void>();
  readonly onStateChanged = this.stateChanged.event;
  /** It is there again, after a crash or a restart: whoever waited for events asks for those that were missed. */
  readonly onRestarted = this.restarted.event;
  /** It is gone, without having been asked to end. */
  readonly onLost = this.lost.event;

  private current: SidecarState = { kind: "stopped" };
  private now: Life | undefined;
  private starting: Promise<void> | undefined;
  private crashesMs: number[] = [];

  constructor(
    private readonly log: vscode.LogOutputChannel,
    private readonly prepare: () => Promise<Launch>,
    private readonly services: Services,
  ) {}

  get state(): SidecarState {
    return this.current;
  }

  /** The process that is there now: tells whether a run belongs to it. */
  get life(): Life | undefined {
    return this.now;
  }

  /** Starts the process if there is none. Rejects with what to do when it cannot be started. */
  start(): Promise<void> {
    if (this.current.kind === "ready") {
      return Promise.resolve();
    }
    this.starting ??= this.launch().finally(() => {
      this.starting = undefined;
    });
    return this.starting;
  }

  /** Sends a request as soon as the sidecar is ready. */
  async request<Method extends keyof HostRequests>(
    method: Method,
    params: HostRequests[Method]["params"],
  ): Promise<HostRequests[Method]["result"]> {
    await this.start();
    if (!this.now) {
      throw new Error("the sidecar has just ended; try again");
    }
    return this.now.client.request(method, params, { limitMs: REQUEST_LIMIT_MS });
  }

  /** Ends the process and starts it again, with the settings as they are now. */
  async restart(): Promise<void> {
    await this.starting?.catch(() => undefined);
    this.crashesMs = [];
    await this.stop();
    await this.start();
    this.restarted.fire();
  }

  /** Ends the process: it is asked first, and given this time at each step towards force. */
  async stop(graceMs = STOP_LIMIT_MS): Promise<void> {
    const life = this.now;
    this.now = undefined;
    this.setState({ kind: "stopped" });
    await life?.stop(graceMs);
  }

  /** Ends the process at once. That counts as a crash: it is started again. */
  kill(): void {
    this.now?.kill();
  }

  dispose(): void {
    void this.stop();
    for (const emitter of [this.stateChanged, this.restarted, this.lost]) {
      emitter.dispose();
    }
  }

  private async launch(): Promise<void> {
    this.setState({ kind: "starting" });
    try {
      const launch = await this.prepare();
      if (!launch.found) {
        this.setState({ kind: "missing" });
        throw new Error("agent-sidecar was not found: install it, or name it in the setting agentSidecar.command");
      }
      const life = await Life.start(launch, launch.found, this.services, this.log);
      this.now = life;
      await life.greet();
      if (this.now === life) {
        this.setState({ kind: "ready" });
        void life.ended.then((reason) => this.ended(life, reason));
      }
    } catch (error) {
      this.now = undefined;
      if (this.current.kind === "starting") {
        this.setState({ kind: "failed", message: messageOf(error) });
      }
      this.log.error(messageOf(error));
      throw error;
    }
  }

  private ended(life: Life, reason: ClientError): void {
    this.log.info(reason.message);
    if (life !== this.now) {
      return; // Its end was wanted.
    }
    this.now = undefined;
    this.lost.fire();
    if (!this.mayRestart()) {
      this.setState({ kind: "failed", message: `the sidecar keeps ending by itself, last like this: ${reason.message}; see the log, then restart it` });
      return;
    }
    this.setState({ kind: "stopped" });
    this.start().then(
      () => this.restarted.fire(),
      () => undefined, // The state says it.
    );
  }

  private mayRestart(): boolean {
    const now = Date.now();
    this.crashesMs = [...this.crashesMs.filter((time) => now - time < CRASH_WINDOW_MS), now];
    return this.crashesMs.length <= MAX_CRASHES;
  }

  private setState(state: SidecarState): void {
    this.current = state;
    this.stateChanged.fire(state);
  }
}
