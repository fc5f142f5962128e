// What the sidecar asks of a host, answered by the library: each request exactly once.
// Source: protocol.md ("Requests to the host", ground rules 2 and 4).
import assert from "node:assert/strict";
import { test } from "node:test";

import { asks, gate, withScripted } from "./scripted.mjs";

/** What a host with these settings answers to one request. */
async function answerTo(method, params, settings, how = "ask") {
  const played = await withScripted({ "agent/submit": asks(method, params, how) }, settings, async (sidecar) => {
    await sidecar.submit("hi").result();
  });
  const [answer, ...others] = played.answers();
  assert.deepEqual(others, []);
  return { answer: answer.result ?? answer.error, received: played.received() };
}

test("an approval is decided by the callback, in a word or as a whole result", async () => {
  const asked = [];
  const question = { requestId: "r", toolName: "write_file", input: {}, deadlineMs: 60_000 };
  const decide = async ({ toolName }) => {
    asked.push(toolName);
    return "allowOnce";
  };
  assert.deepEqual((await answerTo("agent/requestApproval", question, { onApproval: decide })).answer, { decision: "allowOnce" });
  assert.deepEqual(asked, ["write_file"]);
  const whole = { decision: "deny", reason: "no" };
  assert.deepEqual((await answerTo("agent/requestApproval", question, { onApproval: () => whole })).answer, whole);
});

test("input is accepted, declined or answered whole", async () => {
  for (const [given, answer] of [
    ["blue", { action: "accept", content: "blue" }],
    [undefined, { action: "decline" }],
    [{ action: "cancel" }, { action: "cancel" }],
    [{ colour: "blue" }, { action: "accept", content: { colour: "blue" } }],
  ]) {
    const question = { message: "colour?" };
    assert.deepEqual((await answerTo("agent/requestInput", question, { onInput: () => given })).answer, answer);
  }
});

test("a request that nobody answers is refused as unknown", async () => {
  for (const method of ["agent/requestApproval", "no/such"]) {
    assert.equal((await answerTo(method, {}, {})).answer.code, -32601);
  }
});

test("a callback that breaks, or gives what is no JSON, is an error without a stack", async () => {
  const breaks = () => {
    throw new RangeError("lost the key");
  };
  assert.deepEqual((await answerTo("agent/requestApproval", {}, { onApproval: breaks })).answer, {
    code: -32603,
    message: "the host's callback failed: RangeError: lost the key",
  });
  assert.equal((await answerTo("agent/requestInput", {}, { onInput: () => ({ big: 1n }) })).answer.code, -32603);
});

test("a question that is withdrawn, or whose deadline passes, is answered once and aborts its callback", async () => {
  for (const [how, params] of [["withdraw", {}], ["ask", { deadlineMs: 50 }]]) {
    const { opened, open } = gate();
    const never = (_, { signal }) => new Promise(() => (signal.aborted ? open() : signal.addEventListener("abort", open)));
    const { answer } = await answerTo("agent/requestApproval", params, { onApproval: never }, how);
    assert.equal(answer.code, -32800);
    if (how === "ask") await opened; // One that is withdrawn at once never reaches its callback.
  }
});

test("a question that was settled elsewhere is dropped, also where both come at once", async () => {
  const never = () => new Promise(() => undefined);
  const resolved = { event: { type: "approvalResolved", requestId: "apr-1", decision: "deny", by: "rule" } };
  const question = { id: "q-1", method: "agent/requestApproval", params: { requestId: "apr-1" } };
  const script = { "agent/submit": [{ notify: question }, resolved, ...asks("agent/requestInput", {})] };
  const settings = { onApproval: never, onInput: () => "x" };
  const played = await withScripted(script, settings, (sidecar) => sidecar.submit("hi").result());
  assert.deepEqual(played.answers().map(({ error, result }) => error?.code ?? result.action), [-32800, "accept"]);
});

test("a decision that was not offered is not sent", async () => {
  const question = { options: [{ decision: "deny", label: "Deny" }] };
  const { answer } = await answerTo("agent/requestApproval", question, { onApproval: () => "allowAlways" });
  assert.deepEqual(answer.code, -32603);
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
  const call = (fields) => ({ callId: "c-1", name: "look", arguments: {}, runId: "r-1", ...fields });
  const { answer, received } = await answerTo("tools/execute", call({}), { tools: [tool] });
  assert.deepEqual(answer, { ok: true, data: { files: 2 } });
  assert.deepEqual(calls, [[{}, "c-1", "r-1", false]]);
  assert.deepEqual(received.find(({ method }) => method === "$/progress").params, {
    token: "c-1",
    value: { kind: "report", message: "looking", percentage: 25 },
  });
  const { run: _, ...definition } = tool;
  assert.deepEqual(received.find(({ method }) => method === "tools/register").params, { tools: [definition] });

  const failing = await answerTo("tools/execute", call({ arguments: { fails: true } }), { tools: [tool] });
  assert.deepEqual(failing.answer, { ok: false, error: "TypeError: no such folder" });
  const unknown = await answerTo("tools/execute", call({ name: "gone" }), { tools: [tool] });
  assert.deepEqual(unknown.answer, { ok: false, error: 'this host has no tool "gone"' });
});

test("a model answers with text, with pieces of it, or whole", async () => {
  const request = { requestId: "m-1", messages: [], tools: [], idleTimeoutMs: 1000 };
  async function* pieces() {
    yield "It ";
    yield "says";
  }
  const streamed = await answerTo("model/complete", request, { onModel: pieces });
  assert.deepEqual(streamed.answer, { message: { role: "assistant", content: "It says" } });
  const deltas = streamed.received.filter(({ method }) => method === "model/delta").map(({ params }) => params);
  assert.deepEqual(deltas, [{ requestId: "m-1", text: "It " }, { requestId: "m-1", text: "says" }]);
  const text = await answerTo("model/complete", request, { onModel: () => "Yes" });
  assert.deepEqual(text.answer, { message: { role: "assistant", content: "Yes" } });
  const whole = { message: { role: "assistant", content: "" }, finishReason: "length" };
  assert.deepEqual((await answerTo("model/complete", request, { onModel: async () => whole })).answer, whole);
});

test("an answerer of the host's own outweighs the callbacks", async () => {
  const settings = { answerers: { "agent/requestApproval": ({ toolName }) => ({ decision: toolName }) }, onApproval: () => "deny" };
  assert.deepEqual((await answerTo("agent/requestApproval", { toolName: "allowOnce" }, settings)).answer, { decision: "allowOnce" });
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
