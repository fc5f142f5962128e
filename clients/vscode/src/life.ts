// One life of the sidecar: a process, and the editor's own client that speaks with it as with any language server.

import { mkdir } from "node:fs/promises";

import {
  BrokenStream,
  type ClientError,
  describedBy,
  hostCapabilities,
  NoAnswer,
  Sidecar as Client,
  SidecarExited,
  SidecarProcess,
  StreamTransports,
  type HostSettings,
  type RunnableTool,
} from "agent-sidecar-client";
import type { AgentEventParams, SidecarNotifications } from "agent-sidecar-client/protocol";
import type * as vscode from "vscode";
import { CloseAction, ErrorAction, LanguageClient, type StaticFeature } from "vscode-languageclient/node";

import { escapeLine } from "./common/text";
import { messageOf } from "./errors";
import type { Found } from "./locate";

/** Own choice: the end of a traceback. */
const LAST_WORDS = 3;

/** What a start needs to know, asked for anew at each. */
export interface Launch {
  found: Found | undefined;
  env: NodeJS.ProcessEnv;
  folder: string;
  options: Record<string, unknown>;
  /** A sidecar that does not answer in this time is given up. */
  limitMs: number;
}

/** What this window does for the sidecar: answers its questions, lends models, runs tools, hears what it tells. */
export interface Services extends Pick<HostSettings, "onApproval" | "onInput" | "onModel"> {
  tools: RunnableTool[];
  takeEvent: (event: AgentEventParams) => void;
  listeners: { [Method in keyof SidecarNotifications]?: (params: SidecarNotifications[Method]["params"]) => void };
}

export class Life {
  /** When it is over, and all that it said has been dealt with; with the reason. Never rejects. */
  readonly ended: Promise<ClientError>;
  /** Why it was given up, where it was. */
  private fault: ClientError | undefined;

  /** Starts the process. Rejects with what to do when it cannot be started. */
  static async start(launch: Launch, found: Found, services: Services, log: vscode.LogOutputChannel): Promise<Life> {
    await mkdir(launch.folder, { recursive: true });
    log.info(`starting ${[found.command, ...found.args].join(" ")} (from ${found.from})`);
    const process = await SidecarProcess.start({
      command: [found.command, ...found.args],
      cwd: launch.folder,
      env: launch.env,
      onStderr: (line) => log.appendLine(line),
    });
    const { tools, takeEvent, listeners, ...settings } = services;
    const transports = new StreamTransports(process.stdout, process.stdin, (params) => takeEvent(params as AgentEventParams));
    const editorsClient: LanguageClient = new LanguageClient("agentSidecar", "Agent Sidecar", async () => transports, {
      documentSelector: [{ scheme: "file" }],
      initializationOptions: launch.options,
      outputChannel: log,
      connectionOptions: { messageStrategy: transports.messageStrategy },
      initializationFailedHandler: () => false, // `greet` rejects with it.
      errorHandler: {
        error: (error) => {
          if (error instanceof BrokenStream) {
            life.giveUp(error);
          }
          return { action: ErrorAction.Continue, handled: true };
        },
        closed: () => ({ action: CloseAction.DoNotRestart, handled: true }), // Another life begins, not this one again.
      },
    });
    editorsClient.registerFeature(announcing(settings));
    // Attached before it starts, so that nothing that the sidecar asks at once finds nobody.
    const client = await Client.attach(editorsClient, settings);
    for (const [method, listener] of Object.entries(listeners)) {
      client.onNotification(method, listener);
    }
    const life = new Life(process, transports, editorsClient, client, tools, launch.limitMs);
    return life;
  }

  private constructor(
    private readonly process: SidecarProcess,
    private readonly transports: StreamTransports,
    private readonly editorsClient: LanguageClient,
    readonly client: Client,
    private readonly tools: RunnableTool[],
    private readonly limitMs: number,
  ) {
    this.ended = this.untilTheEnd();
  }

  /** Shakes hands. Rejects with the reason, and what the process said of it; then it is over. */
  async greet(): Promise<void> {
    const over = this.ended.then((reason) => {
      throw reason;
    });
    const limit = setTimeout(() => this.giveUp(new NoAnswer("initialize", this.limitMs)), this.limitMs);
    try {
      await Promise.race([this.editorsClient.start(), over]);
      describedBy(this.editorsClient.initializeResult); // Throws where it is no sidecar, or one of another protocol.
      await this.client.registerTools(...this.tools);
    } catch (error) {
      this.kill();
      await this.ended;
      throw new Error(`the sidecar could not be started: ${this.lastWords(error)}; see the log`, { cause: error });
    } finally {
      clearTimeout(limit);
    }
  }

  /** Asks it to end, and ends it by force where it does not after three waits of `graceMs` each. */
  async stop(graceMs: number): Promise<void> {
    void this.client.close(); // The connection itself is the editor's client's.
    // Where it does not say goodbye, its process is ended all the same.
    await this.editorsClient.stop(graceMs).catch(() => undefined);
    await this.process.stop(graceMs);
  }

  /** Ends it at once. */
  kill(): void {
    this.process.killTree();
  }

  /** An error, and what the process said last, which often says why. */
  private lastWords(error: unknown): string {
    const lines = this.process.stderrTail.split("\n").filter((line) => line.trim() !== "");
    const said = escapeLine(lines.slice(-LAST_WORDS).join(" / "));
    const message = messageOf(error instanceof SidecarExited ? new SidecarExited(error.status, error.signal) : error);
    return said === "" ? message : `${message}; it said: ${said}`;
  }

  private giveUp(why: ClientError): void {
    this.fault ??= why;
    this.kill();
  }

  private async untilTheEnd(): Promise<ClientError> {
    const reason = await this.process.ended;
    await this.transports.drained();
    this.kill(); // It may have closed its stdout and live on.
    this.transports.reader.end();
    void this.client.close();
    return this.fault ?? reason;
  }
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
