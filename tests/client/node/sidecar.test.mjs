// The library over the real sidecar, with replayed models and one of its own.
// Source: protocol.md and clients/node/README.md.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { RunCancelled, Sidecar } from "agent-sidecar-client";

import { all, gate, temporaryFolder } from "./scripted.mjs";

const COMMAND = JSON.parse(process.env.SIDECAR);
const cwd = temporaryFolder();
const asked = [];
const waiting = gate();

/** Options whose model plays these turns. */
function replaying(name, ...turns) {
  const file = join(cwd, `${name}.json`);
  writeFileSync(file, JSON.stringify(turns));
  return { [name]: { api: "replay", file } };
}

const WRITES = [{ calls: [{ tool: "write_file", input: { path: "a.txt", content: "hello" } }] }, "Written."];
const OPENS = [{ calls: [{ tool: "open_files", input: { folder: "src" } }] }, "Two files."];
const WAITS = [{ calls: [{ tool: "wait", input: {} }] }, "Never said."];

const settings = {
  command: COMMAND,
  cwd,
  options: {
    providers: { ...replaying("writes", ...WRITES), ...replaying("opens", ...OPENS), ...replaying("waits", ...WAITS) },
    store: { path: join(cwd, "store.sqlite3") },
  },
  onApproval({ toolName, diff }) {
    asked.push([toolName, diff.includes("+hello")]);
    return "allowOnce";
  },
  async *onModel({ model, messages }) {
    yield `${model} heard `;
    yield `"${messages.at(-1).content}"`;
  },
  tools: [
    {
      name: "open_files",
      description: "Files that are open below a folder",
      inputSchema: { type: "object", properties: { folder: { type: "string" } } },
      run: ({ folder }, { progress }) => {
        progress({ done: 1, total: 2 });
        return [`${folder}/a.ts`, `${folder}/b.ts`];
      },
    },
    {
      name: "wait",
      description: "Waits until it is cancelled",
      inputSchema: { type: "object" },
      run: (_, { signal }) => {
        waiting.open();
        return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      },
    },
  ],
};

let sidecar;
before(async () => {
  sidecar = await Sidecar.spawn(settings);
});
after(() => sidecar.close());

test("the sidecar says what it is", () => {
  assert.equal(sidecar.server.protocolVersion, "1.0");
  assert.ok(sidecar.server.methods.includes("agent/submit"));
  assert.ok(sidecar.server.events.includes("runCompleted"));
});

test("an approval is asked for and the tool runs", async () => {
  const run = sidecar.submit({ prompt: "Write it", model: "writes/x" });
  const types = (await all(run)).map(({ type }) => type);
  assert.equal(await run.text(), "Written.");
  assert.deepEqual(asked, [["write_file", true]]);
  assert.equal(readFileSync(join(cwd, "a.txt"), "utf8"), "hello");
  assert.ok(types.includes("approvalResolved"));
  assert.equal(types.at(-1), "runCompleted");
});

test("a tool of the host's runs and reports", async () => {
  const events = await all(sidecar.submit({ prompt: "Which are open?", model: "opens/x" }));
  const completed = events.find(({ type }) => type === "toolExecutionCompleted");
  assert.equal(completed.isError, false);
  assert.match(completed.output, /src\/b\.ts/);
  assert.equal(events.find(({ type }) => type === "toolExecutionProgress").done, 50);
});

test("a model of the host's answers, and the session goes on", async () => {
  const first = sidecar.submit({ prompt: "one", model: "host/mine" });
  assert.equal(await first.text(), 'mine heard "one"');
  const second = sidecar.submit({ prompt: "two", model: "host/mine", sessionId: first.sessionId });
  assert.equal(await second.text(), 'mine heard "two"');
  const session = await sidecar.request("session/get", { sessionId: first.sessionId });
  assert.deepEqual(session.runs.map(({ runId }) => runId), [first.runId, second.runId]);
});

test("aborting a signal cancels the run, and its tool", async () => {
  const controller = new AbortController();
  const run = sidecar.submit({ prompt: "Wait", model: "waits/x", signal: controller.signal });
  await waiting.opened;
  controller.abort();
  await assert.rejects(run.result(), RunCancelled);
  assert.equal((await all(run)).at(-1).stopReason, "cancelled");
});

test("any other method is a request, and what it refuses has a kind", async () => {
  const { tools } = await sidecar.request("tools/list", { selector: { sources: ["host"] } });
  assert.deepEqual(tools.map(({ name }) => name).sort(), ["open_files", "wait"]);
  await sidecar.unregisterTools("open_files");
  await assert.rejects(sidecar.request("tools/call", { name: "open_files" }), { kind: "notFound" });
  await assert.rejects(sidecar.request("session/get", { sessionId: "nobody's" }), { kind: "sessionNotFound" });
});

test("the CommonJS build is the same library", () => {
  const { Sidecar: common } = createRequire(import.meta.url)("agent-sidecar-client");
  assert.equal(typeof common.spawn, "function");
  assert.notEqual(common, Sidecar);
});
