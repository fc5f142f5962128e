// Unified diffs of one file: which file, and what it becomes. Pure.

/** The file that a diff is about, as its head names it. */
export function fileOf(diff: string): string | undefined {
  const path = /^\+\+\+ (.+)$/m.exec(diff)?.[1]?.split("\t", 1)[0];
  return path?.startsWith("b/") ? path.slice(2) : path;
}

/** The text with the hunks of a diff applied. Throws an error where one does not fit. */
export function applied(text: string, diff: string): string {
  const lineEnd = text.includes("\r\n") ? "\r\n" : "\n";
  const lines = text === "" ? [] : text.split(/\r?\n/);
  // Lines that end the text with a line end are followed by an empty one.
  const endsWithLine = lines.at(-1) === "";
  if (endsWithLine) {
    lines.pop();
  }
  let shift = 0;
  let isOpenEnd = !endsWithLine && lines.length > 0;
  const hunks = hunksOf(diff);
  if (hunks.length === 0) {
    throw new Error("the diff says only how many lines change");
  }
  for (const hunk of hunks) {
    const at = (hunk.before.length === 0 ? hunk.start : hunk.start - 1) + shift;
    const found = lines.slice(at, at + hunk.before.length);
    if (found.join("\n") !== hunk.before.join("\n")) {
      throw new Error(`the change does not fit the file at line ${hunk.start}`);
    }
    lines.splice(at, hunk.before.length, ...hunk.after);
    shift += hunk.after.length - hunk.before.length;
    if (at + hunk.after.length === lines.length) {
      isOpenEnd = hunk.hasOpenEnd;
    }
  }
  return lines.length === 0 ? "" : lines.join(lineEnd) + (isOpenEnd ? "" : lineEnd);
}

interface Hunk {
  start: number;
  before: string[];
  after: string[];
  /** The new text ends without a line end. */
  hasOpenEnd: boolean;
}

function hunksOf(diff: string): Hunk[] {
  const hunks: Hunk[] = [];
  let sign = "";
  for (const line of diff.split("\n")) {
    const head = /^@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@/.exec(line);
    const hunk = hunks.at(-1);
    if (head) {
      hunks.push({ start: Number(head[1]), before: [], after: [], hasOpenEnd: false });
    } else if (hunk && line.startsWith("\\")) {
      hunk.hasOpenEnd ||= sign !== "-";
    } else if (hunk && line !== "") {
      sign = line.charAt(0);
      const text = line.slice(1).replace(/\r$/, "");
      if (sign !== "+") hunk.before.push(text);
      if (sign !== "-") hunk.after.push(text);
    }
  }
  return hunks;
}
