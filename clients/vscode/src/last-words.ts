// What a process wrote to stderr last: it says best why the process did not start.

import type { Readable } from "node:stream";

/** Own choice: a traceback's end, and a line or two before it. */
const MAX_CHARACTERS = 2_000;
const MAX_LINES = 3;
/** Own choice: a process that is gone has its stderr closed in this time, unless another holds it open. */
const CLOSE_LIMIT_MS = 1_000;

export class LastWords {
  private text = "";
  private readonly closed: Promise<void>;

  constructor(stderr: Readable | null) {
    stderr?.setEncoding("utf8").on("data", (piece: string) => {
      this.text = (this.text + piece).slice(-MAX_CHARACTERS);
    });
    this.closed = stderr ? new Promise((resolve) => stderr.once("close", resolve)) : Promise.resolve();
  }

  /** The last lines in one, once the process is gone; empty where it said nothing. */
  async read(): Promise<string> {
    let limit: NodeJS.Timeout | undefined;
    await Promise.race([this.closed, new Promise((resolve) => (limit = setTimeout(resolve, CLOSE_LIMIT_MS)))]);
    clearTimeout(limit);
    const lines = this.text.split(/\r?\n/).filter((line) => line.trim() !== "");
    return lines.slice(-MAX_LINES).join(" / ");
  }
}
