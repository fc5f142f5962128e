/** Messages to bytes and back, framed as LSP 3.17 frames them; events take a way of their own. */
import type { Readable, Writable } from "node:stream";

import {
  AbstractMessageReader,
  AbstractMessageWriter,
  type DataCallback,
  type Disposable,
  type Message,
  type MessageReader,
  type MessageWriter,
} from "vscode-jsonrpc/node";

import { BrokenStream } from "./errors.js";

/** Longer than any sensible header. Own choice; it ends the wait for a header in what is not the protocol. */
const MAX_HEADER_BYTES = 8 * 1024;

/** The sidecar's own default limit. */
const MAX_FRAME_BYTES = 64 * 1024 * 1024;

const END_OF_HEADER = "\r\n\r\n";

/** Takes bytes as they come and gives the bodies of whole frames, however the bytes were cut. */
export class FrameDecoder {
  #chunks: Buffer[] = [];
  #bytes = 0;
  #bodyBytes: number | undefined;

  /** Calls `take` with each body that `data` completes. Throws BrokenStream when the bytes are not frames. */
  feed(data: Buffer, take: (body: string) => void): void {
    this.#chunks.push(data);
    this.#bytes += data.length;
    // A large body is put together once, when all of it is there.
    if (this.#bodyBytes !== undefined && this.#bytes < this.#bodyBytes) return;
    const buffer = this.#chunks.length === 1 ? data : Buffer.concat(this.#chunks, this.#bytes);
    const used = this.#takeFrames(buffer, take);
    this.#bytes = buffer.length - used;
    this.#chunks = this.#bytes > 0 ? [buffer.subarray(used)] : [];
  }

  #takeFrames(buffer: Buffer, take: (body: string) => void): number {
    let at = 0;
    for (;;) {
      if (this.#bodyBytes === undefined) {
        const end = buffer.indexOf(END_OF_HEADER, at, "latin1");
        if (end < 0 && buffer.length - at <= MAX_HEADER_BYTES) return at;
        this.#bodyBytes = contentLength(buffer, at, end);
        at = end + END_OF_HEADER.length;
      }
      const end = at + this.#bodyBytes;
      if (end > buffer.length) return at;
      this.#bodyBytes = undefined;
      take(buffer.toString("utf8", at, end));
      at = end;
    }
  }
}

/** The size of the body whose header lies between `start` and `end` (below 0: it has no end). */
function contentLength(buffer: Buffer, start: number, end: number): number {
  const header = end < 0 ? "" : buffer.toString("latin1", start, end);
  const found = /^content-length\s*:\s*(\d+)\s*$/im.exec(header);
  if (found === null) {
    const seen = JSON.stringify(buffer.toString("latin1", start, start + 60));
    throw new BrokenStream(`not a sidecar: it begins a frame with ${seen}`);
  }
  const bytes = Number(found[1]);
  if (bytes > MAX_FRAME_BYTES) throw new BrokenStream(`a frame of ${bytes} bytes; the limit is ${MAX_FRAME_BYTES}`);
  return bytes;
}

/**
 * Reads messages for vscode-jsonrpc.
 *
 * In place of its own reader because that one, and its queue behind it, go through the event loop twice for each
 * message, which costs a stream of events more than all the rest. `takeEvent` gets the params of each `agent/event` at
 * once; everything else takes the usual way, and an `approvalResolved` does so, too.
 */
export class FrameReader extends AbstractMessageReader implements MessageReader {
  readonly #input: Readable;
  readonly #takeEvent: (params: unknown) => void;
  readonly #decoder = new FrameDecoder();

  constructor(input: Readable, takeEvent: (params: unknown) => void) {
    super();
    this.#input = input;
    this.#takeEvent = takeEvent;
  }

  listen(callback: DataCallback): Disposable {
    const takeBody = (body: string): void => this.#takeBody(body, callback);
    const takeData = (data: Buffer): void => {
      try {
        this.#decoder.feed(data, takeBody);
      } catch (error) {
        this.#input.off("data", takeData);
        this.#input.resume(); // Whoever writes must not block on a pipe that nobody reads.
        this.fireError(error);
      }
    };
    this.#input.on("data", takeData);
    this.#input.on("error", () => undefined); // It closes after that, which is what counts.
    return { dispose: () => this.#input.off("data", takeData) };
  }

  /** Tells the connection that it is closed. Not done when the input ends: what came before is still to be dealt with. */
  end(): void {
    this.fireClose();
  }

  /** A body that is no message is passed over: the stream itself is still whole. */
  #takeBody(body: string, callback: DataCallback): void {
    const message = messageOf(body);
    if (message === undefined || isVainWithdrawal(message)) return;
    if (message.method === "agent/event" && message.id === undefined) {
      this.#takeEvent(message.params);
      if (!isResolution(message.params)) return; // One is also heard after its question, which takes the usual way.
    }
    callback(message as unknown as Message);
  }
}

interface Incoming {
  id?: unknown;
  method?: unknown;
  params?: unknown;
}

function messageOf(body: string): Incoming | undefined {
  try {
    const message: unknown = JSON.parse(body);
    return typeof message === "object" && message !== null && !Array.isArray(message) ? message : undefined;
  } catch {
    return undefined;
  }
}

function isResolution(params: unknown): boolean {
  const { event } = (params ?? {}) as { event?: { type?: unknown } | null };
  return event?.type === "approvalResolved";
}

/** vscode-jsonrpc stumbles over a withdrawal that says not of what. */
function isVainWithdrawal({ method, params }: Incoming): boolean {
  return method === "$/cancelRequest" && !(typeof params === "object" && params !== null && "id" in params);
}

/** Writes messages for vscode-jsonrpc: at once, in order, a frame a write. */
export class FrameWriter extends AbstractMessageWriter implements MessageWriter {
  readonly #output: Writable;

  constructor(output: Writable) {
    super();
    this.#output = output;
    // A pipe that breaks is no error of its own: the end of the process says why.
    output.on("error", () => undefined);
  }

  /** Rejects what is not JSON (a cycle, a bigint). */
  async write(message: Message): Promise<void> {
    const body = Buffer.from(JSON.stringify(message));
    if (!this.#output.writable) return;
    this.#output.write(Buffer.concat([Buffer.from(`Content-Length: ${body.length}\r\n\r\n`), body]));
  }

  end(): void {
    this.#output.end();
  }
}
