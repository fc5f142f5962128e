// What the sidecar asks of a host, answered by the library: each request exactly once.
// Source: protocol.md ("Requests to the host", ground rules 2 and 4).
import assert from "node:assert/strict";
import { test } from "node:test";

import { ANSWER, asks, gate, withScripted } from "./scripted.mjs";

/** What a host with these settings answers to requests that come one after the other, and all it sends. */
async function answersTo(requests, settings) {
  const asked = requests.map(([method, params, how = "ask"]) => ({ ...asks(method, params, how)[0], isOdd: method === "no/such" }));
  const { answers, received } = await answersOf([...asked, { result: ANSWER }], settings);
  assert.equal(answers.length, requests.length);
  return { answers, received };
}

async function answersOf(steps, settings) {
  const played = await withScripted({ "agent/submit": steps }, settings, (sidecar) => sidecar.submit("hi").result());
  return { answers: played.answers().map(({ result, error }) => result ?? error), received: played.received() };
}

test("an approval is decided by the callback, in a word or as a whole result", async () => {
  const asked = [];
  const whole = { decision: "deny", reason: "no" };
  const onApproval = async ({ toolName }) => {
    asked.push(toolName);
    return toolName === "write_file" ? "allowOnce" : whole;
  };
  const question = (toolName) => ["agent/requestApproval", { requestId: "r", toolName, input: {}, deadlineMs: 60_000 }];
  const { answers } = await answersTo([question("write_file"), question("delete")], { onApproval });
  assert.deepEqual(answers, [{ decision: "allowOnce" }, whole]);
  assert.deepEqual(asked, ["write_file", "delete"]);
});

test("input is accepted, declined or answered whole", async () => {
  const given = ["blue", undefined, { action: "cancel" }, { colour: "blue" }];
  const { answers } = await answersTo(
    given.map((_, place) => ["agent/requestInput", { message: `${place}` }]),
    { onInput: ({ message }) => given[Number(message)] },
  );
  assert.deepEqual(answers, [
    { action: "accept", content: "blue" },
    { action: "decline" },
    { action: "cancel" },
    { action: "accept", content: { colour: "blue" } },
  ]);
});

test("a request that nobody answers is refused as unknown", async () => {
  const { answers } = await answersTo([["agent/requestApproval", {}], ["no/such", {}]], {});
  assert.deepEqual(answers.map(({ code }) => code), [-32601, -32601]);
});

test("a callback that breaks, or gives what is no JSON or was not offered, is an error without a stack", async () => {
  const onApproval = ({ options }) => {
    if (options.length === 1) return "allowAlways";
    throw new RangeError("lost the key");
  };
  const { answers } = await answersTo(
    [
      ["agent/requestApproval", {}],
      ["agent/requestApproval", { options: [{ decision: "deny", label: "Deny" }] }],
      ["agent/requestInput", {}],
    ],
    { onApproval, onInput: () => ({ big: 1n }) },
  );
  assert.deepEqual(answers.map(({ code }) => code), [-32603, -32603, -32603]);
  assert.equal(answers[0].message, "the host's callback failed: RangeError: lost the key");
  assert.match(answers[1].message, /"allowAlways" is none of what was offered: deny/);
});

test("a question that is withdrawn, or whose deadline passes, is answered once and aborts its callback", async () => {
  const { opened, open } = gate();
  const onApproval = (_, { signal }) => new Promise(() => signal.addEventListener("abort", open));
  const { answers } = await answersTo(
    [["agent/requestApproval", {}, "withdraw"], ["agent/requestApproval", { deadlineMs: 50 }]],
    { onApproval },
  );
  assert.deepEqual(answers.map(({ code }) => code), [-32800, -32800]);
  await opened; // By the second: one that is withdrawn at once never reaches its callback.
});

test("a question that was settled elsewhere is dropped, also where both come at once", async () => {
  const resolved = { event: { type: "approvalResolved", requestId: "apr-1", decision: "deny", by: "rule" } };
  const question = { id: "q-1", method: "agent/requestApproval", params: { requestId: "apr-1" } };
  const another = { ask: { id: "q-2", method: "agent/requestInput", params: {} } };
  const steps = [{ notify: question }, resolved, another, { result: ANSWER }];
  const { answers } = await answersOf(steps, { onApproval: () => new Promise(() => undefined), onInput: () => "x" });
  assert.deepEqual(answers.map(({ code, action }) => code ?? action), [-32800, "accept"]);
});

test("a tool runs with its context, reports progress, and what it throws is told to the model", async () => {
  const calls = [];
  const tool = {
    name: "look",
    description: "Looks",
    inputSchema: { type: "object" },
    tags: ["editor"],
    run(input, { callId, runId, signal, progress }) {
      calls.push([input, callId, runId, signal.aborted]);
      progress({ done: 1, total: 4, message: "looking" });
      if (input.fails) throw new TypeError("no such folder");
      return { files: 2 };
    },
  };
  const call = (fields) => ["tools/execute", { callId: "c-1", name: "look", arguments: {}, runId: "r-1", ...fields }];
  const { answers, received } = await answersTo([call({}), call({ arguments: { fails: true } }), call({ name: "gone" })], { tools: [tool] });
  assert.deepEqual(answers, [
    { ok: true, data: { files: 2 } },
    { ok: false, error: "TypeError: no such folder" },
    { ok: false, error: 'this host has no tool "gone"' },
  ]);
  assert.deepEqual(calls[0], [{}, "c-1", "r-1", false]);
  assert.deepEqual(received.find(({ method }) => method === "$/progress").params, {
    token: "c-1",
    value: { kind: "report", message: "looking", percentage: 25 },
  });
  const { run: _, ...definition } = tool;
  assert.deepEqual(received.find(({ method }) => method === "tools/register").params, { tools: [definition] });
});

test("a model answers with text, with pieces of it, or whole", async () => {
  const whole = { message: { role: "assistant", content: "" }, finishReason: "length" };
  async function* pieces() {
    yield "It ";
    yield "says";
  }
  const replies = { pieces, text: () => "Yes", whole: async () => whole };
  const request = (model) => ["model/complete", { requestId: `m-${model}`, model, messages: [], tools: [], idleTimeoutMs: 1000 }];
  const { answers, received } = await answersTo(Object.keys(replies).map(request), { onModel: ({ model }) => replies[model]() });
  const said = (content) => ({ message: { role: "assistant", content } });
  assert.deepEqual(answers, [said("It says"), said("Yes"), whole]);
  const deltas = received.filter(({ method }) => method === "model/delta").map(({ params }) => params);
  assert.deepEqual(deltas, [{ requestId: "m-pieces", text: "It " }, { requestId: "m-pieces", text: "says" }]);
});

test("an answerer of the host's own outweighs the callbacks", async () => {
  const own = ({ toolName }) => ({ decision: toolName });
  const settings = { answerers: { "agent/requestApproval": own }, onApproval: () => "deny" };
  const { answers } = await answersTo([["agent/requestApproval", { toolName: "allowOnce" }]], settings);
  assert.deepEqual(answers, [{ decision: "allowOnce" }]);
});

test("capabilities say what callbacks there are", async () => {
  const settings = { onApproval: () => "deny", optOutEvents: ["assistantReasoningDelta"], options: { model: "m" } };
  const { received } = await withScripted({}, settings, async () => undefined);
  const { params } = received()[0];
  assert.deepEqual(params.capabilities.experimental.agentSidecar, {
    protocolVersion: "1.0",
    approvals: true,
    input: false,
    hostTools: true,
    hostModel: false,
    optOutEvents: ["assistantReasoningDelta"],
  });
  assert.equal(params.processId, process.pid);
  assert.deepEqual(params.initializationOptions, { model: "m" });
  assert.match(params.workspaceFolders[0].uri, /^file:\/\/\/.*node-client-/);
});
