// Diffs as the diff editor shows them, and the fields of a schema that a person is asked to fill in.

import assert from "node:assert/strict";
import { test } from "node:test";

import { choicesOf, fieldsOf, readTyped } from "../src/input-schema";
import { applied, fileOf } from "../src/patch";

const DIFF = "--- a/notes.txt\n+++ b/notes.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n";

test("a diff names its file and is applied where it fits", () => {
  assert.equal(fileOf(DIFF), "notes.txt");
  assert.equal(applied("one\ntwo\nthree\n", DIFF), "one\n2\nthree\n");
  assert.throws(() => applied("one\nother\nthree\n", DIFF), /does not fit the file at line 1/);
});

test("line ends of the file are kept, and a missing last one is told", () => {
  assert.equal(applied("one\r\ntwo\r\nthree\r\n", DIFF), "one\r\n2\r\nthree\r\n");
  const open = "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n";
  assert.equal(applied("a", open), "b");
});

test("a new file comes from nothing", () => {
  assert.equal(applied("", "--- /dev/null\n+++ b/new\n@@ -0,0 +1,2 @@\n+one\n+two\n"), "one\ntwo\n");
});

test("what is required is asked for first", () => {
  const schema = { type: "object", properties: { a: { type: "string" }, b: { type: "integer" } }, required: ["b"] };
  assert.deepEqual(fieldsOf(schema).map((field) => [field.name, field.isRequired]), [["b", true], ["a", false]]);
});

test("choices have the words of the schema", () => {
  assert.deepEqual(choicesOf({ enum: ["x", "y"], enumNames: ["Ex"] }), [{ label: "Ex", value: "x" }, { label: "y", value: "y" }]);
  assert.equal(choicesOf({ type: "string" }), undefined);
});

test("what is typed is of the wanted kind, or the fault is told", () => {
  assert.deepEqual(readTyped("7", { isRequired: true, schema: { type: "integer" } }), { value: 7 });
  assert.ok(readTyped("seven", { isRequired: true, schema: { type: "integer" } }).fault);
  assert.ok(readTyped("a", { isRequired: true, schema: { type: "string", minLength: 2 } }).fault);
});
