// What a person is shown: nothing hidden in a text, no fence that a text closes, no markup of a model's own.

import assert from "node:assert/strict";
import { test } from "node:test";

import { parseHTML } from "linkedom";

import { commandLine, duration, escapeHidden, escapeLine, summary } from "../src/common/text";
import { fenced } from "../src/fence";
import { parse, render } from "../src/webview/markdown";

function rendered(text: string): string {
  const { document } = parseHTML("<!doctype html><main></main>");
  globalThis.document = document as unknown as Document;
  const into = document.querySelector("main");
  assert(into);
  render(parse(text), into as unknown as Node);
  return into.innerHTML;
}

test("characters that hide or reorder text are escapes", () => {
  assert.equal(escapeHidden("a\u202eb\u200bc\u0007\td\r\n"), "a\\u{202e}b\\u{200b}c\\u{7}\td\n");
  assert.equal(escapeLine("one\ntwo"), "one\\ntwo");
});

test("a command is shown as a shell would need it", () => {
  assert.equal(commandLine({ command: ["git", "commit", "-m", "it's done"] }), `git commit -m 'it'"'"'s done'`);
  assert.equal(commandLine({ shell: "ls | wc" }), "ls | wc");
  assert.equal(commandLine({ path: "x" }), undefined);
});

test("arguments are one line that is not too long", () => {
  assert.equal(summary({ path: "a\nb" }, 40), "a\\nb");
  assert.equal(summary({ path: "src", limit: 3 }, 40), "path=src  limit=3");
  assert.equal(summary({ text: "x".repeat(100) }, 10), `${"x".repeat(9)}…`);
});

test("times are told as people tell them", () => {
  assert.deepEqual([12.4, 1234, 125_000].map(duration), ["12 ms", "1.2 s", "2 min 5 s"]);
});

test("nothing closes a fence from inside", () => {
  assert.equal(fenced("a\n```\nb", "ts"), "````ts\na\n```\nb\n````");
});

test("markup of a model stays text, and its links lead to pages and files alone", () => {
  assert.match(rendered("**bold** <img src=x onerror=alert(1)>"), /<strong>bold<\/strong> &lt;img/);
  assert.doesNotMatch(rendered("[x](javascript:alert(1))"), /<a /);
  assert.doesNotMatch(rendered("[x](command:evil)"), /<a /);
  assert.match(rendered("[notes](notes.txt)"), /<a [^>]*href="notes.txt"/);
});
