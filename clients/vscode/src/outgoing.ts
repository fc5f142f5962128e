// Changes on their way to the chat, gathered so that a fast model costs a message now and then, not one a delta. Pure.

import type { Change } from "./common/entries";

/** Own choice: as often as the chat shows what streams in. */
const GATHER_MS = 50;

export class Outgoing {
  private waiting: Change[] = [];
  private timer: NodeJS.Timeout | undefined;
  private sentMs = 0;

  constructor(private readonly send: (changes: Change[]) => void) {}

  add(change: Change): void {
    const last = this.waiting.at(-1);
    if (change.kind === "append" && last?.kind === "append" && last.id === change.id) {
      last.text += change.text;
    } else if (change.kind === "entry") {
      // As it is now: it may grow before it is sent, and what has joined it by then must not be sent twice.
      this.waiting = this.waiting.filter((other) => !isAbout(other, change.entry.id));
      this.waiting.push({ kind: "entry", entry: { ...change.entry } });
    } else {
      this.waiting.push({ ...change });
    }
    // What comes alone is sent at once.
    this.timer ??= setTimeout(() => this.flush(), Math.max(0, this.sentMs + GATHER_MS - performance.now()));
  }

  flush(): void {
    this.forgetTimer();
    const changes = this.waiting;
    this.waiting = [];
    if (changes.length > 0) {
      this.sentMs = performance.now();
      this.send(changes);
    }
  }

  /** Drops what waits: all is sent anew. */
  clear(): void {
    this.forgetTimer();
    this.waiting = [];
  }

  private forgetTimer(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }
}

function isAbout(change: Change, id: number): boolean {
  return (change.kind === "entry" && change.entry.id === id) || (change.kind === "append" && change.id === id);
}
