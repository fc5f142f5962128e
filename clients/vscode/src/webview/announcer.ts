// What a screen reader is told: what happens, in a sentence, and not every word of an answer as it streams in.

import type { Change, Entry } from "../common/entries";

/** Own choice: of a long answer the beginning is read out; the whole can be read in the conversation. */
const MAX_READ_CHARACTERS = 600;

export class Announcer {
  private sentences: string[] = [];

  constructor(private readonly place: HTMLElement) {}

  /** What is said at once is read out together: a second text would cut the first one short. */
  say(text: string): void {
    if (this.sentences.push(text) === 1) {
      queueMicrotask(() => {
        this.place.textContent = this.sentences.join(" ");
        this.sentences = [];
      });
    }
  }

  /** Says what a change means, where it means something. */
  changed(change: Change, before: Entry | undefined): void {
    const said = change.kind === "entry" ? sentence(change.entry, before) : undefined;
    if (said !== undefined) {
      this.say(said);
    }
  }
}

function sentence(entry: Entry, before: Entry | undefined): string | undefined {
  switch (entry.kind) {
    case "answer":
      return entry.isStreaming ? undefined : `The agent says: ${entry.text.slice(0, MAX_READ_CHARACTERS)}`;
    case "note":
      return entry.text;
    case "call":
      if (entry.question && !(before?.kind === "call" && before.question)) {
        return `A question: may ${entry.toolName} run? Use the command Answer the Question to go there.`;
      }
      if (before?.kind === "call" && before.state === entry.state) {
        return undefined;
      }
      return entry.state === "running" || entry.state === "failed" ? `${entry.toolName} ${entry.state === "running" ? "runs" : "failed"}` : undefined;
    default:
      return undefined;
  }
}
