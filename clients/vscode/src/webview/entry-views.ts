// One entry of the conversation as an element, and how it follows its entry. Calls of tools have a file of their own.

import type { AnswerEntry, NoteEntry, ThoughtEntry, UserEntry } from "../common/entries";
import { element } from "./dom";
import { MarkdownStream } from "./markdown";

export interface EntryView<Kind> {
  element: HTMLElement;
  /** The entry is other than before. */
  update(entry: Kind): void;
  /** More text has come. */
  append?(text: string): void;
  /** Shows what has come since the last time. */
  flush?(): void;
}

export function userView(entry: UserEntry): EntryView<UserEntry> {
  const attached = entry.attachments.map((name) => element("li", {}, name));
  const made = element(
    "article",
    { class: "user", "aria-label": "You" },
    element("p", { class: "said" }, entry.text),
    attached.length > 0 ? element("ul", { class: "attached", "aria-label": "Goes along" }, ...attached) : undefined,
  );
  return { element: made, update: () => undefined };
}

export function answerView(entry: AnswerEntry): EntryView<AnswerEntry> {
  const made = element("article", { class: "answer markdown", "aria-label": "Agent" });
  return { element: made, ...streamed(made, made, entry) };
}

export function thoughtView(entry: ThoughtEntry): EntryView<ThoughtEntry> {
  const body = element("div", { class: "markdown" });
  const made = element("details", { class: "thought" }, element("summary", {}, "Thinking"), body);
  return { element: made, ...streamed(made, body, entry) };
}

export function noteView(entry: NoteEntry): EntryView<NoteEntry> {
  const made = element("p", { class: `note ${entry.tone}` }, entry.text);
  return { element: made, update: () => undefined };
}

function streamed(made: HTMLElement, body: HTMLElement, entry: AnswerEntry | ThoughtEntry): Omit<EntryView<AnswerEntry | ThoughtEntry>, "element"> {
  const stream = new MarkdownStream(body);
  let shown = entry.text.length;
  const mark = ({ isStreaming }: AnswerEntry | ThoughtEntry): void => {
    made.classList.toggle("streaming", isStreaming);
    made.setAttribute("aria-busy", String(isStreaming));
  };
  stream.append(entry.text);
  mark(entry);
  return {
    append: (text) => {
      shown += text.length;
      stream.append(text);
    },
    update: (next) => {
      stream.append(next.text.slice(shown));
      shown = next.text.length;
      mark(next);
    },
    flush: () => stream.flush(),
  };
}
