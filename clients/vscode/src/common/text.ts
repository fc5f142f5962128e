// Text from models and servers, made fit to be shown: as it is, with nothing hidden.

import type { Content, JsonObject } from "agent-sidecar-client/protocol";

/** Code points that hide, reorder or fake text: controls, soft hyphen, bidi, zero-width, separators, tags. */
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu;

/** Text in which every character that could hide or reorder text is an escape. Line ends and tabs stay. */
export function escapeHidden(text: string): string {
  return text.replaceAll("\r\n", "\n").replace(HIDDEN, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return character === "\r" ? "\\r" : `\\u{${code.toString(16)}}`;
  });
}

/** The same as one line: line ends are escapes, too. */
export function escapeLine(text: string): string {
  return escapeHidden(text).replaceAll("\n", "\\n");
}

function plain(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

/** The arguments of a call in one line, cut to `width` characters. */
export function summary(input: JsonObject, width: number): string {
  const names = Object.keys(input);
  // One argument says it best by itself: a path, a command.
  const parts = names.length === 1 ? names.map((name) => plain(input[name])) : names.map((name) => `${name}=${plain(input[name])}`);
  const line = escapeLine(parts.join("  "));
  return line.length > width ? `${line.slice(0, width - 1)}…` : line;
}

/** The arguments of a call, whole: a name and its text each. */
export function shownArguments(input: JsonObject): { name: string; text: string }[] {
  return Object.keys(input).map((name) => ({ name: escapeLine(name), text: escapeHidden(plain(input[name])) }));
}

/** The exact command of a call that runs one, quoted as a shell would need it; none for other calls. */
export function commandLine(input: JsonObject): string | undefined {
  if (typeof input.shell === "string") {
    return escapeHidden(input.shell);
  }
  if (Array.isArray(input.command) && input.command.every((word) => typeof word === "string")) {
    return escapeHidden(input.command.map(quoted).join(" "));
  }
  return typeof input.command === "string" ? escapeHidden(input.command) : undefined;
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
}

/** The text of a message's content; other blocks by their type. */
export function textOf(content: Content): string {
  if (typeof content === "string") {
    return content;
  }
  return content.map((block) => ("text" in block && typeof block.text === "string" ? block.text : `[${block.type}]`)).join("\n");
}

/** A span of time as a person says it. */
export function duration(milliseconds: number): string {
  if (milliseconds < 1000) {
    return `${Math.round(milliseconds)} ms`;
  }
  if (milliseconds < 60_000) {
    return `${(milliseconds / 1000).toFixed(1)} s`;
  }
  const seconds = Math.round(milliseconds / 1000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}
