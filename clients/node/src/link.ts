/** One life of the connection to a sidecar: from its opening, over a process, streams or a wire that is there, to its end. */
import type { Readable, Writable } from "node:stream";

import { createMessageConnection, type MessageConnection } from "vscode-jsonrpc/node";

import { Conversation } from "./conversation.js";
import { BrokenStream, ClientError, NoAnswer, SidecarExited } from "./errors.js";
import { describedBy, initializeParams, type ServerDescription } from "./handshake.js";
import { SidecarProcess } from "./process.js";
import type { AgentEventParams } from "./protocol.js";
import type { Answerer, ConnectSettings, SpawnSettings } from "./settings.js";
import { StreamTransports } from "./transports.js";
import type { Wire } from "./wire.js";

/** Who uses a link: what answers the sidecar's requests, and what hears of events and of the end. */
export interface LinkUser {
  readonly answerers: ReadonlyMap<string, Answerer>;
  takeEvent(params: unknown): void;
  /** Called once, unless the link was ended on purpose. */
  lost(reason: ClientError): void;
}

export class Link {
  readonly conversation: Conversation;
  readonly process: SidecarProcess | undefined;
  readonly #user: LinkUser;
  readonly #streams: StreamWire | undefined;
  #isEnding = false;

  /** Starts a process and speaks over its pipes. Rejects with CannotStart. */
  static async spawn(settings: SpawnSettings, user: LinkUser): Promise<Link> {
    const process = await SidecarProcess.start({
      command: settings.command ?? ["agent-sidecar"],
      cwd: settings.cwd,
      env: settings.env,
      onStderr: settings.onStderr,
    });
    const streams = new StreamWire(process.stdout, process.stdin, user.takeEvent);
    const link = new Link(streams.connection, user, streams, process);
    void process.ended.then((why) => link.#loseAfterLastMessage(why));
    return link;
  }

  /** Speaks over streams that somebody else opened. */
  static over(input: Readable, output: Writable, user: LinkUser): Link {
    const streams = new StreamWire(input, output, user.takeEvent);
    const link = new Link(streams.connection, user, streams);
    input.once("close", () => void link.#loseAfterLastMessage(new SidecarExited(null)));
    return link;
  }

  /** Joins a connection that somebody else has opened and shaken hands over, and will close. Throws ClientError. */
  static joined(wire: Wire, user: LinkUser): Link {
    try {
      return new Link(wire, user);
    } catch (error) {
      throw new ClientError(`the connection cannot be used: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  private constructor(wire: Wire, user: LinkUser, streams?: StreamWire, process?: SidecarProcess) {
    this.#user = user;
    this.#streams = streams;
    this.process = process;
    this.conversation = new Conversation(wire, user.answerers);
    this.conversation.listen("agent/event", (params) => {
      if (!streams) user.takeEvent(params);
      this.#dropResolved(params);
    });
    streams?.listen((error) => {
      this.#lose(error);
      process?.killTree();
    });
  }

  /** LSP's handshake. Rejects with BrokenStream where the other side is no sidecar. */
  async shakeHands(settings: ConnectSettings, limitMs: number): Promise<ServerDescription> {
    const tooLate = (): ClientError => new NoAnswer("initialize", limitMs);
    const described = describedBy(await this.conversation.ask("initialize", initializeParams(settings), { limitMs, tooLate }));
    this.conversation.notify("initialized", {});
    return described;
  }

  /** Says goodbye where the connection is ours, then ends it, and the process for certain. */
  async end(exitMs: number): Promise<void> {
    this.#isEnding = true;
    if (this.#streams) await this.#sayGoodbye(exitMs);
    await this.process?.stop(exitMs);
    this.conversation.lose(new ClientError("the sidecar was closed"));
    this.#streams?.dispose();
  }

  #dropResolved(params: unknown): void {
    const { event } = params as AgentEventParams;
    if (event?.type === "approvalResolved") this.conversation.drop(event.requestId);
  }

  async #sayGoodbye(limitMs: number): Promise<void> {
    try {
      await this.conversation.ask("shutdown", {}, { limitMs, tooLate: () => new NoAnswer("shutdown", limitMs) });
      this.conversation.notify("exit", {});
    } catch {
      // It is gone or stuck; stopping the process deals with both.
    }
  }

  async #loseAfterLastMessage(reason: ClientError): Promise<void> {
    await this.#streams?.drained();
    this.#lose(reason);
  }

  #lose(reason: ClientError): void {
    if (this.conversation.lost) return;
    this.conversation.lose(reason);
    if (!this.#isEnding) this.#user.lost(reason);
  }
}

/** vscode-jsonrpc over two streams. */
class StreamWire {
  readonly connection: MessageConnection;
  readonly #output: Writable;
  readonly #transports: StreamTransports;

  constructor(input: Readable, output: Writable, takeEvent: (params: unknown) => void) {
    this.#output = output;
    this.#transports = new StreamTransports(input, output, takeEvent);
    const { reader, writer, messageStrategy } = this.#transports;
    this.connection = createMessageConnection(reader, writer, undefined, { messageStrategy });
  }

  /** Begins to read; `onBroken` hears when what comes is no protocol. */
  listen(onBroken: (error: BrokenStream) => void): void {
    this.connection.onError(([error]) => {
      if (error instanceof BrokenStream) onBroken(error);
    });
    this.connection.listen();
  }

  drained(): Promise<void> {
    return this.#transports.drained();
  }

  dispose(): void {
    this.#output.end();
    this.connection.dispose();
  }
}
