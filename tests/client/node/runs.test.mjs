// Runs over a scripted sidecar: events, results, cancelling, steering, resuming, limits.
// Source: protocol.md ("Events", agent/submit, session/events) and clients/node/README.md.
import assert from "node:assert/strict";
import { test } from "node:test";

import { ClientError, NoAnswer, RequestFailed, RunCancelled } from "agent-sidecar-client";

import { all, ANSWER, gate, SAYS_HELLO, withScripted } from "./scripted.mjs";

const types = (events) => events.map((event) => event.type);

test("a run gives its events in order and then its result", async () => {
  await withScripted({ "agent/submit": SAYS_HELLO }, {}, async (sidecar) => {
    const run = sidecar.submit("hi");
    const notifications = await all(run.notifications());
    assert.deepEqual(notifications.map(({ seq }) => seq), [0, 1, 2, 3]);
    assert.deepEqual(new Set(notifications.map(({ runId }) => runId)), new Set([run.runId]));
    assert.deepEqual(types(notifications.map(({ event }) => event)), [
      "runStarted",
      "assistantTextDelta",
      "assistantTextDelta",
      "runCompleted",
    ]);
    assert.equal((await run.result()).stopReason, "stop");
    assert.equal(await run.text(), "Hello");
    assert.deepEqual([run.sessionId, run.lastSeq], ["s-1", 3]);
    assert.deepEqual(await all(run), []);
  });
});

test("events can be read after the result, and a loop that is left goes on where it was", async () => {
  await withScripted({ "agent/submit": SAYS_HELLO }, {}, async (sidecar) => {
    const run = sidecar.submit({ prompt: "hi", sessionId: "s-9", maxTurns: 3 });
    await run.result();
    for await (const event of run) {
      assert.equal(event.type, "runStarted");
      break;
    }
    assert.equal((await all(run)).length, 3);
  }).then(({ received }) => {
    const { params } = received().find(({ method }) => method === "agent/submit");
    assert.equal(params.runId.length, 32);
    assert.deepEqual({ ...params, runId: "" }, { prompt: "hi", sessionId: "s-9", maxTurns: 3, runId: "" });
  });
});

test("a run that fails tells so by its last event and by its result", async () => {
  const error = { code: -31020, message: "no luck", data: { kind: "modelError", provider: "x" } };
  const failing = [{ event: { type: "runCompleted", stopReason: "error", usage: {}, error } }, { error }];
  await withScripted({ "agent/submit": failing }, {}, async (sidecar) => {
    const run = sidecar.submit("hi");
    assert.deepEqual(types(await all(run)), ["runCompleted"]);
    const failure = await run.result().catch((failed) => failed);
    assert.ok(failure instanceof RequestFailed);
    assert.deepEqual([failure.code, failure.kind, failure.message, failure.data.provider], [-31020, "modelError", "no luck", "x"]);
  });
});

test("a run that never started throws from the loop, too", async () => {
  const refused = [{ error: { code: -31031, message: "busy", data: { kind: "sessionBusy" } } }];
  await withScripted({ "agent/submit": refused }, {}, async (sidecar) => {
    await assert.rejects(all(sidecar.submit("hi")), { name: "RequestFailed", kind: "sessionBusy" });
  });
});

const UNTIL_CANCELLED = {
  "agent/submit": [
    { event: { type: "runStarted", model: "m" } },
    { wait: "agent/cancel" },
    { event: { type: "runCompleted", stopReason: "cancelled", usage: {} } },
    { error: { code: -32800, message: "cancelled", data: { kind: "requestCancelled" } } },
  ],
  "agent/cancel": [{ result: { cancelled: true } }],
};

test("a cancelled run rejects with RunCancelled, and so does one whose signal is aborted", async () => {
  await withScripted(UNTIL_CANCELLED, {}, async (sidecar) => {
    const run = sidecar.submit("hi");
    for await (const event of run) if (event.type === "runStarted") assert.equal(await run.cancel(), true);
    await assert.rejects(run.result(), RunCancelled);

    const controller = new AbortController();
    const aborted = sidecar.submit({ prompt: "hi", signal: controller.signal });
    const read = [];
    for await (const event of aborted) {
      read.push(event.type);
      controller.abort();
    }
    assert.deepEqual(read, ["runStarted", "runCompleted"]);
    await assert.rejects(aborted.result(), RunCancelled);
    await assert.rejects(sidecar.submit({ prompt: "never sent", signal: controller.signal }).result(), RunCancelled);
  }).then(({ received }) => {
    assert.deepEqual(received().filter(({ method }) => method === "agent/submit").length, 2);
  });
});

test("steering reaches the run", async () => {
  const script = {
    "agent/submit": [{ wait: "agent/steer" }, { result: ANSWER }],
    "agent/steer": [{ result: { accepted: true } }],
  };
  const { received } = await withScripted(script, {}, async (sidecar) => {
    const run = sidecar.submit({ prompt: "hi", runId: "mine" });
    assert.throws(() => sidecar.submit({ prompt: "hi", runId: "mine" }), ClientError);
    assert.equal(await run.steer("shorter"), true);
    await run.result();
  });
  const { params } = received().find(({ method }) => method === "agent/steer");
  assert.deepEqual(params, { runId: "mine", prompt: "shorter" });
});

test("a run that falls silent and a request without an answer end at their limits, and are withdrawn", async () => {
  const script = { "agent/submit": [], "tools/list": [], "session/list": [] };
  const { received } = await withScripted(script, { limits: { runSilenceMs: 150 } }, async (sidecar) => {
    await assert.rejects(sidecar.submit("hi").result(), (error) => error instanceof NoAnswer && /agent\/submit within 0\.15 s/.test(error.message));
    await assert.rejects(sidecar.request("tools/list", {}, { limitMs: 50 }), NoAnswer);
    const reason = new Error("not wanted any more");
    const controller = new AbortController();
    const asking = sidecar.request("session/list", {}, { signal: controller.signal });
    controller.abort(reason);
    await assert.rejects(asking, reason);
    await sidecar.request("mcp/list").catch(() => undefined);
  });
  const messages = received();
  const withdrawn = messages.filter(({ method }) => method === "$/cancelRequest").map(({ params }) => params.id);
  const ids = ["agent/submit", "tools/list", "session/list"].map((name) => messages.find(({ method }) => method === name).id);
  assert.deepEqual(withdrawn, ids);
});

const numbered = (seq, event) => ({ sessionId: "s-1", runId: "r-1", seq, event });
const delta = (seq, text) => numbered(seq, { type: "assistantTextDelta", text });
const END = { type: "runCompleted", stopReason: "stop", usage: { totalTokens: 3 } };

test("a run is resumed with what was missed, without doubles, up to its last event", async () => {
  const script = {
    "session/events": [
      [{ result: { events: [delta(1, "one "), delta(2, "two "), numbered(3, END)] } }],
      // Events that are sent while those before them are fetched come after them.
      [
        { notify: { method: "agent/event", params: delta(2, "two ") } },
        { notify: { method: "agent/event", params: delta(3, "three") } },
        { result: { events: [delta(1, "one "), delta(2, "two ")] } },
      ],
      [{ result: { events: [] } }],
    ],
    "session/get": [
      [
        { result: { sessionId: "s-1", messages: [], runs: [{ runId: "r-1", status: "running" }] } },
        { notify: { method: "agent/event", params: numbered(4, END) } },
      ],
      [{ result: { sessionId: "s-1", messages: [], runs: [] } }],
    ],
  };
  const { received } = await withScripted(script, {}, async (sidecar) => {
    const over = sidecar.resume({ sessionId: "s-1", runId: "r-1", afterSeq: 1 });
    assert.deepEqual((await all(over.notifications())).map(({ seq }) => seq), [2, 3]);
    assert.deepEqual(await over.result(), { sessionId: "s-1", runId: "r-1", stopReason: "stop", usage: { totalTokens: 3 } });

    const running = sidecar.resume({ sessionId: "s-1", runId: "r-1" });
    assert.deepEqual((await all(running.notifications())).map(({ seq }) => seq), [1, 2, 3, 4]);
    assert.equal(await running.text(), "one two three");

    await assert.rejects(sidecar.resume({ sessionId: "s-1", runId: "r-1" }).result(), /does not go on/);
  });
  const [first, second] = received().filter(({ method }) => method === "session/events");
  assert.deepEqual(first.params, { sessionId: "s-1", runId: "r-1", afterSeq: 0 });
  assert.deepEqual(second.params, { sessionId: "s-1", runId: "r-1" });
});

test("notifications reach those who listen, and a listener is taken off again", async () => {
  const changed = { added: ["a"], removed: [], changed: [] };
  const script = { "agent/submit": [{ notify: { method: "tools/changed", params: changed } }, ...SAYS_HELLO] };
  await withScripted(script, {}, async (sidecar) => {
    const heard = [];
    const { opened, open } = gate();
    const listening = sidecar.onNotification("tools/changed", (params) => {
      heard.push(params);
      open();
    });
    const seen = [];
    sidecar.onNotification("agent/event", ({ seq }) => seen.push(seq));
    await sidecar.submit("hi").result();
    await opened;
    listening.dispose();
    await sidecar.submit("hi").result();
    assert.deepEqual(heard, [changed]);
    assert.deepEqual(seen, [0, 1, 2, 3, 0, 1, 2, 3]);
  });
});
