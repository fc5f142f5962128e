// What the events of a run leave in the transcript, where their order or their words are not the usual ones.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { RequestApprovalParams } from "agent-sidecar-client/protocol";

import type { CallEntry } from "../src/common/entries";
import { ending, Transcript } from "../src/common/transcript";

function called(...callIds: string[]): Transcript {
  const transcript = new Transcript(() => undefined);
  for (const callId of callIds) {
    transcript.apply({ type: "toolExecutionStarted", callId, toolName: "write_file", input: {} });
  }
  return transcript;
}

function question(requestId: string, callId: string): RequestApprovalParams {
  return {
    requestId, callId, toolName: "write_file", input: {}, permissions: ["write"], reason: "asked", title: "Run write_file?",
    options: [{ decision: "deny", label: "Deny" }], deadlineMs: 1,
  };
}

function states(transcript: Transcript): [string, boolean][] {
  return transcript.entries.filter((entry): entry is CallEntry => entry.kind === "call").map((call) => [call.state, call.question !== undefined]);
}

test("the end of a question is of that question alone", () => {
  const transcript = called("one", "two");
  transcript.ask(question("q1", "one"));
  transcript.apply({ type: "approvalRequested", requestId: "q2", callId: "two", toolName: "write_file", permissions: [], reason: "" });
  transcript.resolved("q1");
  assert.deepEqual(states(transcript), [["running", false], ["asking", false]]);
  transcript.ask(question("q2", "two"));
  transcript.resolved("q1"); // The event comes after the person's own answer.
  assert.deepEqual(states(transcript), [["running", false], ["asking", true]]);
});

test("an end for a reason that only a later sidecar knows is no failure", () => {
  const reason = "outOfCredit" as "stop";
  assert.deepEqual(ending(reason), ["Ended: outOfCredit", "info"]);
  assert.deepEqual(ending(reason, undefined, { message: "no credit" }), ["Failed: no credit", "error"]);
  assert.deepEqual(ending("error", undefined, { message: "no", data: { kind: "modelError" } }), ["Failed: no (modelError)", "error"]);
});
