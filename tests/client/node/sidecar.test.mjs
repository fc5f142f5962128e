// The library over the real sidecar, with replayed models and one of its own.
// Source: protocol.md and clients/node/README.md.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { hostCapabilities, RunCancelled, Sidecar, SidecarExited } from "agent-sidecar-client";
import { createMessageConnection, StreamMessageReader, StreamMessageWriter } from "vscode-jsonrpc/node";

import { all, gate } from "./scripted.mjs";

const COMMAND = [process.env.PYTHON, "-P", "-m", "sidecar"];
const cwd = mkdtempSync(join(tmpdir(), "node-client-"));
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

test("after a crash a restarted sidecar gives the events that were missed", async () => {
  const run = sidecar.submit({ prompt: "Wait again", model: "waits/x" });
  const seen = [];
  const crash = async () => {
    for await (const { seq, event } of run.notifications()) {
      seen.push(seq);
      if (event.type === "toolExecutionStarted") sidecar.kill();
    }
  };
  await assert.rejects(crash, SidecarExited);
  await sidecar.restart();
  const resumed = sidecar.resume(run);
  const missed = await all(resumed.notifications());
  assert.deepEqual([...seen, ...missed.map(({ seq }) => seq)], [...Array(seen.length + missed.length).keys()]);
  assert.deepEqual([missed.at(-1).event.type, missed.at(-1).event.error.data.kind], ["runCompleted", "io"]);
  await assert.rejects(resumed.result(), { name: "RequestFailed", kind: "io" });
});

test("a connection that somebody else opened can be used as it is", async () => {
  const mine = { onModel: () => "over yours", tools: settings.tools };
  const env = { ...process.env, XDG_DATA_HOME: cwd };
  const child = spawn(COMMAND[0], COMMAND.slice(1), { stdio: ["pipe", "pipe", "ignore"], cwd, env });
  const connection = createMessageConnection(new StreamMessageReader(child.stdout), new StreamMessageWriter(child.stdin));
  connection.listen();
  const capabilities = { experimental: { agentSidecar: hostCapabilities(mine) } };
  connection.initializeResult = await connection.sendRequest("initialize", { processId: process.pid, rootUri: null, capabilities });
  await connection.sendNotification("initialized", {});

  const joined = await Sidecar.attach(connection, mine);
  assert.ok(joined.server.methods.includes("agent/submit"));
  const run = joined.submit({ prompt: "hi", model: "host/mine" });
  assert.equal((await all(run)).at(-1).type, "runCompleted");
  assert.equal(await run.text(), "over yours");
  await joined.close();
  assert.equal(child.exitCode, null); // It is not ours to end.

  connection.dispose();
  await assert.rejects(Sidecar.attach(connection, mine), Error);
  child.stdin.end();
});

test("the CommonJS build is the same library", () => {
  const { Sidecar: common } = createRequire(import.meta.url)("agent-sidecar-client");
  assert.equal(typeof common.spawn, "function");
  assert.notEqual(common, Sidecar);
});
