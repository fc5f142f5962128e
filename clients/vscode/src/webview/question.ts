// The question whether a call may run: what exactly would run, and a button for each answer.

import type { CallEntry, Question, QuestionOption } from "../common/entries";
import { commandLine, shownArguments } from "../common/text";
import { button, element } from "./dom";

export interface Answering {
  answer(requestId: string, option: QuestionOption, reason?: string): void;
  showDiff(requestId: string): void;
}

/** The words of the answers that need none of the question's own. */
const LABELS: Partial<Record<QuestionOption["decision"], string>> = {
  allowOnce: "Allow once",
  deny: "Deny",
  denyAndStop: "Deny and stop",
};

export function questionCard(call: CallEntry, question: Question, answering: Answering): HTMLElement {
  const reason = element("input", { type: "text", placeholder: "Why not? (optional)", "aria-label": "Reason for denying, told to the model" });
  const answers = question.options.map((option) => answerButton(option, () => answering.answer(question.requestId, option, reason.value)));
  const isDenial = (_: unknown, index: number): boolean => question.options[index]?.decision.startsWith("deny") === true;
  const heading = element("h3", { id: `question-${question.requestId}` }, `May ${call.toolName} run?`);
  reason.addEventListener("keydown", (event) => {
    const deny = question.options.find((option) => option.decision === "deny");
    if (event.key === "Enter" && !event.isComposing && deny) {
      event.preventDefault(); // The focus goes to the prompt, where it would begin a line.
      answering.answer(question.requestId, deny, reason.value);
    }
  });
  return element(
    "section",
    { class: "question", role: "group", "aria-labelledby": heading.id, tabindex: "-1" },
    heading,
    ...whatRuns(call, question, answering),
    element("p", { class: "why" }, whyAsked(question)),
    element("div", { class: "answers" }, ...answers.filter((each, index) => !isDenial(each, index))),
    element("div", { class: "denials" }, reason, ...answers.filter(isDenial)),
  );
}

function whatRuns(call: CallEntry, question: Question, answering: Answering): Node[] {
  if (question.diff !== undefined) {
    const shown = element("div", { class: "row" }, button("Show diff", () => answering.showDiff(question.requestId), { class: "secondary" }));
    return [diffBox(question.diff), shown];
  }
  const command = commandLine(call.input);
  if (command !== undefined) {
    const rest = shownArguments(call.input).filter(({ name }) => name !== "command" && name !== "shell");
    return [box(command, "The exact command", "command"), ...argumentList(rest)];
  }
  return argumentList(shownArguments(call.input));
}

function argumentList(shown: { name: string; text: string }[]): Node[] {
  if (shown.length === 0) {
    return [];
  }
  const pairs = shown.flatMap(({ name, text }) => [element("dt", {}, name), element("dd", {}, element("pre", { tabindex: "0" }, text))]);
  return [element("dl", { class: "arguments" }, ...pairs)];
}

function diffBox(diff: string): HTMLElement {
  const kinds: Record<string, string> = { "+": "added", "-": "removed", "@": "place" };
  const lines = diff.trimEnd().split("\n").filter((line) => !/^(---|\+\+\+) /.test(line));
  const nodes = lines.map((line) => element("span", { class: `line ${kinds[line.charAt(0)] ?? ""}` }, `${line}\n`));
  return element("pre", { class: "diff", tabindex: "0", role: "region", "aria-label": "What would change" }, ...nodes);
}

function box(text: string, label: string, kind: string): HTMLElement {
  return element("pre", { class: kind, tabindex: "0", role: "region", "aria-label": label }, text);
}

function whyAsked({ permissions, reason }: Question): string {
  const needs = permissions.length > 0 ? `It needs ${permissions.join(", ")}. ` : "";
  return `${needs}You are asked because of ${reason}.`;
}

function answerButton(option: QuestionOption, onClick: () => void): HTMLButtonElement {
  const kind = option.decision === "allowOnce" ? "primary" : "secondary";
  const remembers = option.rule ? `Remembers ${JSON.stringify(option.rule)}` : undefined;
  const made = button("", onClick, { class: kind, title: remembers, "data-decision": option.decision });
  // What is remembered is told after the colon.
  const [label = "", ...rule] = (LABELS[option.decision] ?? option.label).split(/(?<=: )/);
  made.append(label, ...(rule.length > 0 ? [element("span", { class: "rule" }, rule.join(""))] : []));
  return made;
}
