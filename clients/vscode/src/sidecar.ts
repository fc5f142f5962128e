// The sidecar's process as a language server of this window: started when first needed, started again when it dies.

import { spawn, type ChildProcess } from "node:child_process";
import { mkdir } from "node:fs/promises";

import { describedBy, hostCapabilities, RequestFailed, Sidecar as Client, type HostSettings, type RunnableTool } from "agent-sidecar-client";
import type { HostRequests, SidecarNotifications } from "agent-sidecar-client/protocol";
import * as vscode from "vscode";
import { CloseAction, ErrorAction, LanguageClient, type StaticFeature } from "vscode-languageclient/node";

import { escapeLine } from "./common/text";
import { LastWords } from "./last-words";
import type { Found } from "./locate";

/** Own choice: a sidecar that ends by itself more often than so within a minute is not started again. */
const MAX_CRASHES = 3;
const CRASH_WINDOW_MS = 60_000;
/** A sidecar is gone within 5 s of its end being asked for: protocol.md, ground rule 7.1. */
const STOP_LIMIT_MS = 5_000;
/** Own choice: so long what a process has written is read after its end. */
const DRAIN_LIMIT_MS = 1_000;
/** Own choice: servers may take a minute to start, and a person may have to sign in. */
const REQUEST_LIMIT_MS = 10 * 60_000;

export type SidecarState =
  | { kind: "stopped" }
  | { kind: "starting" }
  | { kind: "ready" }
  | { kind: "missing" }
  | { kind: "failed"; message: string };

/** What a start needs to know, asked for anew at each. */
export interface Launch {
  found: Found | undefined;
  env: NodeJS.ProcessEnv;
  folder: string;
  options: Record<string, unknown>;
}

/** What this window does for the sidecar: answers its questions, lends models, runs tools, hears what it tells. */
export interface Services extends Pick<HostSettings, "onApproval" | "onInput" | "onModel"> {
  tools: RunnableTool[];
  listeners: { [Method in keyof SidecarNotifications]?: (params: SidecarNotifications[Method]["params"]) => void };
}

export class Sidecar implements vscode.Disposable {
  private readonly stateChanged = new vscode.EventEmitter<SidecarState>();
  private readonly restarted = new vscode.EventEmitter<void>();
  private readonly lost = new vscode.EventEmitter<string>();
  readonly onStateChanged = this.stateChanged.event;
  /** It is there again, after a crash or a restart: whoever waited for events asks for those that were missed. */
  readonly onRestarted = this.restarted.event;
  /** It is gone, for the reason given. */
  readonly onLost = this.lost.event;

  private current: SidecarState = { kind: "stopped" };
  private editorsClient: LanguageClient | undefined;
  private client: Client | undefined;
  private child: ChildProcess | undefined;
  private lastWords: LastWords | undefined;
  private starting: Promise<void> | undefined;
  private crashesMs: number[] = [];
  private lives = 0;

  constructor(
    private readonly log: vscode.LogOutputChannel,
    private readonly prepare: () => Promise<Launch>,
    private readonly services: Services,
  ) {}

  get state(): SidecarState {
    return this.current;
  }

  /** How often a sidecar has been started: tells whether a run belongs to the process that is there now. */
  get life(): number {
    return this.lives;
  }

  get pid(): number | undefined {
    return this.child?.pid;
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
    if (!this.client) {
      throw new Error("the sidecar has just ended; try again");
    }
    return this.client.request(method, params, { limitMs: REQUEST_LIMIT_MS });
  }

  /** Ends the process and starts it again, with the settings as they are now. */
  async restart(): Promise<void> {
    await this.starting?.catch(() => undefined);
    this.crashesMs = [];
    await this.stop();
    await this.start();
    this.restarted.fire();
  }

  /** Ends the process: it is asked first. */
  async stop(): Promise<void> {
    const client = this.editorsClient;
    const child = this.child;
    this.forget();
    this.setState({ kind: "stopped" });
    try {
      await client?.stop(STOP_LIMIT_MS);
    } catch (error) {
      this.log.warn(`the sidecar did not end as asked: ${messageOf(error)}`);
      child?.kill("SIGKILL");
    }
  }

  /** Ends the process at once. That counts as a crash: it is started again. */
  kill(): void {
    this.child?.kill("SIGKILL");
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
      await this.connect(launch, launch.found);
      this.setState({ kind: "ready" });
    } catch (error) {
      if (this.current.kind !== "missing") {
        this.setState({ kind: "failed", message: messageOf(error) });
      }
      this.log.error(messageOf(error));
      throw error;
    }
  }

  private async connect(launch: Launch, found: Found): Promise<void> {
    await mkdir(launch.folder, { recursive: true });
    this.log.info(`starting ${[found.command, ...found.args].join(" ")} (from ${found.from})`);
    const client = new LanguageClient("agentSidecar", "Agent Sidecar", () => this.spawn(launch, found), {
      documentSelector: [{ scheme: "file" }],
      initializationOptions: launch.options,
      outputChannel: this.log,
      initializationFailedHandler: () => false, // `start` rejects with it.
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue, handled: true }),
        closed: () => ({ action: CloseAction.DoNotRestart, handled: true }), // `ended` starts it again.
      },
    });
    const { tools, listeners, ...settings } = this.services;
    client.registerFeature(announcing(settings));
    // Attached before it starts, so that nothing that the sidecar asks at once finds nobody.
    const attached = await Client.attach(client, settings);
    for (const [method, listener] of Object.entries(listeners)) {
      attached.onNotification(method, listener);
    }
    this.editorsClient = client;
    this.client = attached;
    this.lives += 1;
    try {
      await client.start();
      describedBy(client.initializeResult); // Throws where it is no sidecar, or one of another protocol.
      await attached.registerTools(...tools);
    } catch (error) {
      const words = this.lastWords;
      this.child?.kill("SIGKILL");
      this.forget();
      const said = escapeLine((await words?.read()) ?? "");
      const why = said === "" ? messageOf(error) : `${messageOf(error)}; it said: ${said}`;
      throw new Error(`the sidecar could not be started: ${why}; see the log`, { cause: error });
    }
  }

  private async spawn(launch: Launch, found: Found): Promise<ChildProcess> {
    const child = spawn(found.command, found.args, { cwd: launch.folder, env: launch.env, windowsHide: true });
    this.child = child;
    this.lastWords = new LastWords(child.stderr);
    await new Promise<void>((resolve, reject) => child.once("spawn", resolve).once("error", reject));
    child.once("exit", (code, signal) => {
      // What it said last is still to be read; what it has started may hold its pipes open.
      const end = (): void => {
        clearTimeout(limit);
        this.ended(child, signal ? `signal ${signal}` : `status ${code}`);
      };
      const limit = setTimeout(end, DRAIN_LIMIT_MS);
      child.once("close", () => setImmediate(end));
    });
    return child;
  }

  private ended(child: ChildProcess, how: string): void {
    this.log.info(`the sidecar ended with ${how}`);
    if (child !== this.child) {
      return; // Its end was wanted, or is dealt with.
    }
    const wasReady = this.current.kind === "ready";
    const client = this.editorsClient;
    this.forget();
    void client?.dispose().catch(() => undefined); // It cannot say goodbye any more.
    this.lost.fire(`the sidecar ended with ${how}`);
    if (!wasReady) {
      return; // `start` rejects.
    }
    if (!this.mayRestart()) {
      this.setState({ kind: "failed", message: `the sidecar keeps ending by itself, last with ${how}; see the log, then restart it` });
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

  private forget(): void {
    void this.client?.close(); // The connection itself is the editor's client's.
    this.client = undefined;
    this.editorsClient = undefined;
    this.child = undefined;
  }

  private setState(state: SidecarState): void {
    this.current = state;
    this.stateChanged.fire(state);
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The kind of a protocol error, if it is one. */
export function kindOf(error: unknown): string | undefined {
  return error instanceof RequestFailed ? error.kind : undefined;
}

function announcing(settings: HostSettings): StaticFeature {
  return {
    fillClientCapabilities: (capabilities) => {
      capabilities.experimental = { agentSidecar: hostCapabilities(settings) };
    },
    initialize: () => undefined,
    getState: () => ({ kind: "static" }),
    clear: () => undefined,
  };
}
