// The conversation: its entries from top to bottom, the end in view while it was in view.

import type { CallEntry, Change, Entry } from "../common/entries";
import { callView } from "./call-view";
import { element } from "./dom";
import { answerView, noteView, thoughtView, userView, type EntryView } from "./entry-views";
import { Frames } from "./frames";
import type { Answering } from "./question";

/** How near to its end a person counts as being at it. */
const AT_END_PIXELS = 40;
const TICK_MS = 200;

interface Shown {
  entry: Entry;
  view: EntryView<Entry> & { tick?(nowMs: number): void };
}

export class Conversation {
  private readonly shown = new Map<number, Shown>();
  private waiting: Change[] = [];
  private readonly frames = new Frames(() => this.flush());
  private ticking: number | undefined;
  /** Whether its end was in view when it was last scrolled. */
  private wasAtEnd = true;
  private readonly empty = element(
    "div",
    { class: "empty" },
    element("h2", {}, "Ask about your code"),
    element("p", {}, "The agent reads, searches and edits what is in this workspace, runs your MCP servers, and asks you before anything risky."),
  );

  constructor(
    private readonly place: HTMLElement,
    private readonly answering: Answering,
    private readonly changed: (change: Change, before: Entry | undefined) => void,
  ) {
    place.append(this.empty);
    const note = (): void => {
      this.wasAtEnd = this.isAtEnd;
    };
    place.addEventListener("scroll", note, { passive: true });
    place.addEventListener("toggle", note, { capture: true });
    // What is below, or beside, has become larger or smaller.
    new ResizeObserver(() => this.wasAtEnd && this.scrollToEnd()).observe(place);
  }

  /** Shows these entries in place of what is shown. */
  reset(entries: Entry[]): void {
    this.waiting = [];
    this.clear();
    entries.forEach((entry) => this.show(entry));
    this.flushViews([...this.shown.values()]);
    this.scrollToEnd();
    this.tickWhileRunning();
  }

  /** Takes changes, and shows them at the next frame. */
  take(changes: Change[]): void {
    this.waiting.push(...changes);
    this.frames.request();
  }

  /** A key was pressed: showing it comes before showing what streams in. */
  yieldToKey(): void {
    this.frames.yieldToKey();
  }

  /** Moves the focus to the question that waits for the longest time. False where there is none. */
  focusQuestion(): boolean {
    this.flush();
    const first = this.place.querySelector<HTMLElement>(".question");
    first?.scrollIntoView({ block: "nearest" });
    first?.querySelector<HTMLElement>("button[data-decision]")?.focus();
    return first !== null;
  }

  private get isAtEnd(): boolean {
    return this.place.scrollHeight - this.place.scrollTop - this.place.clientHeight < AT_END_PIXELS;
  }

  private scrollToEnd(): void {
    this.place.scrollTop = this.place.scrollHeight;
    this.wasAtEnd = true;
  }

  private flush(): void {
    const changes = this.waiting;
    this.waiting = [];
    if (changes.length === 0) {
      return;
    }
    // Who says something wants to see what comes of it.
    const isSaid = changes.some((change) => change.kind === "entry" && change.entry.kind === "user");
    const staysAtEnd = isSaid || this.isAtEnd;
    const touched = new Set<Shown>();
    for (const change of changes) {
      const about = this.apply(change);
      if (about) {
        touched.add(about);
      }
    }
    this.flushViews([...touched]);
    if (staysAtEnd) {
      this.scrollToEnd();
    }
    this.tickWhileRunning();
  }

  private apply(change: Change): Shown | undefined {
    switch (change.kind) {
      case "clear":
        this.clear();
        return undefined;
      case "append": {
        const shown = this.shown.get(change.id);
        shown?.view.append?.(change.text);
        return shown;
      }
      case "entry": {
        const before = this.shown.get(change.entry.id)?.entry;
        const shown = this.show(change.entry);
        this.changed(change, before);
        return shown;
      }
    }
  }

  private show(entry: Entry): Shown {
    const known = this.shown.get(entry.id);
    if (known) {
      known.view.update(entry);
      known.entry = entry;
      return known;
    }
    this.empty.remove();
    const shown: Shown = { entry, view: viewOf(entry, this.answering) };
    this.shown.set(entry.id, shown);
    this.place.append(shown.view.element);
    return shown;
  }

  private flushViews(views: Shown[]): void {
    views.forEach(({ view }) => view.flush?.());
  }

  private clear(): void {
    this.shown.clear();
    this.place.replaceChildren(this.empty);
  }

  private tickWhileRunning(): void {
    const running = [...this.shown.values()].filter(({ entry }) => isRunning(entry));
    if (running.length === 0) {
      clearInterval(this.ticking);
      this.ticking = undefined;
    } else {
      this.ticking ??= window.setInterval(() => this.tick(), TICK_MS);
    }
  }

  private tick(): void {
    const now = Date.now();
    for (const { entry, view } of this.shown.values()) {
      if (isRunning(entry)) {
        view.tick?.(now);
      }
    }
  }
}

function isRunning(entry: Entry): entry is CallEntry {
  return entry.kind === "call" && entry.state === "running";
}

function viewOf(entry: Entry, answering: Answering): Shown["view"] {
  switch (entry.kind) {
    case "user":
      return userView(entry) as Shown["view"];
    case "answer":
      return answerView(entry) as Shown["view"];
    case "thought":
      return thoughtView(entry) as Shown["view"];
    case "note":
      return noteView(entry) as Shown["view"];
    case "call":
      return callView(entry, answering) as Shown["view"];
  }
}
