// A call of a tool: a line with its state and time, which opens to what went in and came out, and its question.

import type { CallEntry } from "../common/entries";
import { commandLine, duration, shownArguments, summary } from "../common/text";
import { element } from "./dom";
import type { EntryView } from "./entry-views";
import { questionCard, type Answering } from "./question";

const SUMMARY_WIDTH = 120;

/** How each state looks and reads: never by colour alone. */
const STATES: Record<CallEntry["state"], { mark: string; word: string }> = {
  waiting: { mark: "○", word: "waiting" },
  asking: { mark: "?", word: "asks you" },
  running: { mark: "◐", word: "running" },
  done: { mark: "✓", word: "done" },
  failed: { mark: "✕", word: "failed" },
};

export function callView(entry: CallEntry, answering: Answering): EntryView<CallEntry> & { tick(nowMs: number): void } {
  const mark = element("span", { class: "mark", "aria-hidden": "true" });
  const state = element("span", { class: "state" });
  const progress = element("progress", { class: "progress", "aria-label": `Progress of ${entry.toolName}` });
  const input = commandLine(entry.input) ?? summary(entry.input, SUMMARY_WIDTH);
  const line = element(
    "summary",
    {},
    mark,
    element("span", { class: "tool" }, entry.toolName),
    element("span", { class: "input", title: input }, input),
    state,
  );
  const body = element("div", { class: "call-body" });
  const details = element("details", {}, line, body);
  const questionPlace = element("div", { class: "question-place" });
  const made = element("article", { class: "call", "aria-label": `Tool ${entry.toolName}` }, details, progress, questionPlace);
  let current = entry;

  // What is folded away is made when somebody looks.
  const fill = (): void => {
    if (details.open) {
      body.replaceChildren(...callBody(current));
    }
  };
  details.addEventListener("toggle", fill);

  const tick = (nowMs: number): void => {
    state.textContent = stateText(current, nowMs);
  };
  const update = (next: CallEntry): void => {
    const before = current;
    current = next;
    made.dataset.state = next.state;
    mark.textContent = STATES[next.state].mark;
    showProgress(progress, next);
    if (before.question?.requestId !== next.question?.requestId || before === next) {
      questionPlace.replaceChildren(...(next.question ? [questionCard(next, next.question, answering)] : []));
    }
    tick(Date.now());
    fill();
  };
  update(entry);
  return { element: made, update, tick };
}

function stateText(entry: CallEntry, nowMs: number): string {
  const { word } = STATES[entry.state];
  if (entry.state === "running") {
    const took = entry.startedMs === undefined ? "" : ` ${duration(Math.max(0, nowMs - entry.startedMs))}`;
    const { done, total, message } = entry.progress ?? {};
    const count = done === undefined ? "" : `, ${done}${total === undefined ? "" : ` of ${total}`}`;
    return `${word}${took}${count}${message ? `, ${message}` : ""}`;
  }
  if (entry.errorKind === "permissionDenied") {
    return "denied";
  }
  const took = entry.durationMs === undefined ? "" : ` ${entry.state === "failed" ? "after" : "in"} ${duration(entry.durationMs)}`;
  return `${word}${took}`;
}

function showProgress(bar: HTMLProgressElement, { state, progress }: CallEntry): void {
  bar.hidden = state !== "running" || progress?.done === undefined;
  if (progress?.done !== undefined && progress.total !== undefined && progress.total > 0) {
    bar.max = progress.total;
    bar.value = Math.min(progress.done, progress.total);
  } else {
    bar.removeAttribute("value");
  }
}

function callBody(entry: CallEntry): Node[] {
  const parts: Node[] = shownArguments(entry.input).flatMap(({ name, text }) => [element("h4", {}, name), textBox(text, name)]);
  if (parts.length === 0) {
    parts.push(element("p", { class: "none" }, "No arguments"));
  }
  if (entry.output !== undefined) {
    const head = entry.state === "failed" ? `Error${entry.errorKind ? ` (${entry.errorKind})` : ""}` : "Result";
    parts.push(element("h4", {}, head), textBox(entry.output, head));
  }
  return parts;
}

function textBox(text: string, label: string): HTMLElement {
  return element("pre", { tabindex: "0", role: "region", "aria-label": label }, text === "" ? "(empty)" : text);
}
