/** Both directions over two streams, as `createMessageConnection` and vscode-languageclient's `LanguageClient` take them. */
import type { Readable, Writable } from "node:stream";

import type { MessageStrategy } from "vscode-jsonrpc/node";

import { FrameReader, FrameWriter } from "./frames.js";

/** Give the connection `messageStrategy` among its options: `drained` counts by it. */
export class StreamTransports {
  readonly reader: FrameReader;
  readonly writer: FrameWriter;
  readonly messageStrategy: MessageStrategy = {
    handleMessage: (message, next) => {
      this.#handled++;
      return next(message);
    },
  };
  #handled = 0;

  /** `takeEvent` gets the params of each `agent/event` as soon as they are read, before the connection would. */
  constructor(input: Readable, output: Writable, takeEvent: (params: unknown) => void) {
    this.reader = new FrameReader(input, takeEvent);
    this.writer = new FrameWriter(output);
  }

  /** When all that was read has been dealt with. vscode-jsonrpc takes one message in each turn of the event loop. */
  async drained(): Promise<void> {
    let before;
    do {
      before = this.#handled;
      await new Promise((resolve) => setImmediate(resolve));
    } while (this.#handled !== before);
  }
}
