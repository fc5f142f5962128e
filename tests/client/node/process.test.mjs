// The sidecar's process under the library, and the bytes between: how it starts, dies and is ended.
// Source: protocol.md (Transport, ground rule 7) and clients/node/README.md.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { PassThrough } from "node:stream";
import { test } from "node:test";

import {
  BrokenStream, CannotStart, ClientError, hostCapabilities, NoAnswer, Sidecar, SidecarExited, SidecarProcess, StreamTransports,
} from "agent-sidecar-client";
import { createMessageConnection, StreamMessageReader, StreamMessageWriter } from "vscode-jsonrpc/node";

import { all, gate, SAYS_HELLO, scripted, withScripted } from "./scripted.mjs";

const python = (program) => [process.env.PYTHON, "-c", program];

test("the death of the process ends all that waits, with its status and last words", async () => {
  const dying = [{ event: { type: "runStarted", model: "m" } }, { stderr: "first\nout of memory" }, { exit: 3 }];
  await withScripted({ "agent/submit": dying, "tools/list": [] }, {}, async (sidecar) => {
    const reasons = [];
    sidecar.onExit((reason) => reasons.push(reason));
    const listing = sidecar.request("tools/list");
    const run = sidecar.submit("hi");
    const death = await all(run).catch((error) => error);
    assert.ok(death instanceof SidecarExited);
    assert.equal(death.message, "the sidecar exited with status 3: out of memory");
    assert.deepEqual([death.status, death.signal, death.stderrTail], [3, null, "first\nout of memory"]);
    await assert.rejects(listing, death);
    await assert.rejects(run.result(), death);
    await assert.rejects(sidecar.request("tools/list"), death);
    await assert.rejects(sidecar.submit("again").result(), death);
    assert.deepEqual(reasons, [death]);
    assert.equal(sidecar.lost, death);
  });
});

test("a process that is killed says by which signal, and can be started again", async () => {
  const changed = { added: [], removed: ["a"], changed: [] };
  const script = {
    "agent/submit": [{ wait: "never" }],
    "tools/list": [{ notify: { method: "tools/changed", params: changed } }, { result: { tools: [] } }],
  };
  const tool = { name: "look", description: "", inputSchema: {}, run: () => 1 };
  const { received } = await withScripted(script, { tools: [tool] }, async (sidecar) => {
    const heard = [];
    sidecar.onNotification("tools/changed", (params) => heard.push(params));
    const run = sidecar.submit("hi");
    sidecar.kill();
    await assert.rejects(run.result(), /ended by SIGKILL/);
    await assert.rejects(sidecar.resume(run).result(), /nothing was heard of run/);
    const before = sidecar.pid;
    await Promise.all([sidecar.restart(), sidecar.restart()]);
    assert.notEqual(sidecar.pid, before);
    assert.deepEqual(await sidecar.request("tools/list"), { tools: [] });
    assert.deepEqual(heard, [changed]);
  });
  assert.equal(received().filter(({ method }) => method === "tools/register").length, 2);
});

test("a command that does not exist cannot start", async () => {
  const refuses = (settings, message) => assert.rejects(Sidecar.spawn(settings), { name: "CannotStart", message });
  assert.ok(CannotStart.prototype instanceof ClientError);
  await refuses({ command: ["/no/such/sidecar"] }, /^cannot start "\/no\/such\/sidecar": there is no such program; install it/);
  await refuses({ command: [process.env.PYTHON], cwd: "/no/such/folder" }, /there is no folder "\/no\/such\/folder"$/);
});

test("what is no sidecar is told apart", async () => {
  const refuses = (script, message, settings = {}) => assert.rejects(Sidecar.spawn(scripted(script, settings).settings), message);
  const later = { protocolVersion: "2.0", methods: [], events: [], models: [] };
  const agent = { capabilities: { experimental: { agentSidecar: later } } };
  const error = { code: -32602, message: "invalid params: model", data: { kind: "invalidParams" } };
  await Promise.all([
    assert.rejects(Sidecar.spawn({ command: python("print('hello ' * 2000); input()") }), BrokenStream),
    refuses({ initialize: [{ result: { capabilities: {} } }] }, /without experimental\.agentSidecar/),
    refuses({ initialize: [{ result: agent }] }, /speaks protocol 2\.0/),
    refuses({ initialize: [{ error }] }, { name: "RequestFailed", message: error.message, code: -32602 }),
    refuses({ initialize: [{ stderr: "no home" }, { exit: 2 }] }, /exited with status 2: no home/),
    refuses({ initialize: [] }, NoAnswer, { limits: { startMs: 200 } }),
  ]);
});

test("a stray print breaks the stream, and ends what waits and the process", async () => {
  const script = { "agent/submit": [{ raw: "debug: here\r\n\r\n" }, { wait: "never" }] };
  await withScripted(script, {}, async (sidecar) => {
    await assert.rejects(sidecar.submit("hi").result(), (error) => error instanceof BrokenStream && /debug: here/.test(error.message));
    await gone(sidecar.pid);
  });
});

test("closing ends runs and says goodbye in order", async () => {
  let run;
  const { received } = await withScripted({ "agent/submit": [] }, {}, async (sidecar) => {
    run = sidecar.submit("hi");
  });
  await assert.rejects(run.result(), ClientError);
  const methods = received().map(({ method }) => method);
  assert.deepEqual([methods[0], ...methods.slice(-2)], ["initialize", "shutdown", "exit"]);
});

test("a process that ignores everything is killed with its children", async () => {
  const program = `
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import os, time; os.close(0); os.close(1); time.sleep(600)"], stderr=subprocess.DEVNULL)
print(child.pid, file=sys.stderr, flush=True)
time.sleep(600)
`;
  const { opened, open } = gate();
  const limits = { startMs: 400, exitMs: 100 };
  await assert.rejects(Sidecar.spawn({ command: python(program), onStderr: open, limits }), NoAnswer);
  const child = Number(await opened);
  await gone(child);
});

/** Waits for the end of a process. */
async function gone(pid) {
  const waiting = spawn(process.env.PYTHON, ["-c", `
import os, select, sys
try:
    sys.exit(0 if select.select([os.pidfd_open(${pid})], [], [], 5)[0] else 1)
except ProcessLookupError:
    pass
`]);
  assert.deepEqual(await once(waiting, "exit"), [0, null]);
}

test("stderr reaches the callback line by line", async () => {
  const lines = [];
  const script = { "agent/submit": [{ stderr: "one\ntwo\nthree" }, ...SAYS_HELLO] };
  await withScripted(script, { onStderr: (line) => lines.push(line) }, async (sidecar) => {
    await sidecar.submit("hi").result();
  });
  assert.deepEqual(lines, ["one", "two", "three"]);
});

test("a connection that somebody else opened can be used as it is", async (context) => {
  const resolved = { event: { type: "approvalResolved", requestId: "apr-1", decision: "deny", by: "rule" } };
  const question = { id: "q-1", method: "agent/requestApproval", params: { requestId: "apr-1" } };
  const played = scripted({ "agent/submit": [[{ notify: question }, resolved, ...SAYS_HELLO], [{ exit: 3 }]] });
  const mine = { onApproval: () => new Promise(() => undefined) };
  const child = spawn(played.settings.command[0], played.settings.command.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
  const connection = createMessageConnection(new StreamMessageReader(child.stdout), new StreamMessageWriter(child.stdin));
  child.once("exit", () => connection.dispose());
  context.after(() => child.kill());
  connection.listen();
  const capabilities = { experimental: { agentSidecar: hostCapabilities(mine) } };
  connection.initializeResult = await connection.sendRequest("initialize", { processId: null, capabilities });

  const joined = await Sidecar.attach(connection, mine);
  assert.deepEqual(joined.server.models, ["scripted/one"]);
  const run = joined.submit("hi");
  assert.equal((await all(run)).at(-1).type, "runCompleted");
  assert.equal(await run.text(), "Hello");
  await assert.rejects(joined.submit("again").result(), SidecarExited);
  assert.deepEqual(played.answers().map(({ error }) => error.code), [-32800]);
  await joined.close();
  await assert.rejects(joined.submit("more").result(), ClientError);
  await assert.rejects(Sidecar.attach(connection, mine), { name: "ClientError", message: /^the connection cannot be used: / });
});

test("a connection over the parts hears all that a dying process wrote, then that it is closed", async () => {
  const changed = frame({ method: "tools/changed", params: {} });
  const bytes = Buffer.concat([...Array(500).fill(changed), frame({ id: 0, result: "kept" })]).toString("base64");
  const program = `import base64, os, sys; sys.stdin.buffer.read(1); os.write(1, base64.b64decode("${bytes}")); os._exit(3)`;
  const dying = await SidecarProcess.start({ command: python(program) });
  const transports = new StreamTransports(dying.stdout, dying.stdin, () => undefined);
  const { reader, writer, messageStrategy } = transports;
  const connection = createMessageConnection(reader, writer, undefined, { messageStrategy });
  const heard = [];
  connection.onNotification("tools/changed", () => heard.push("changed"));
  connection.onClose(() => heard.push("closed"));
  connection.listen();
  const answer = connection.sendRequest("tools/list", {});
  const reason = await dying.ended;
  await transports.drained();
  reader.end();
  assert.equal(reason.message, "the sidecar exited with status 3");
  assert.equal(await answer, "kept");
  assert.deepEqual([heard.length, heard.at(-1)], [501, "closed"]);
});

/** A frame, as any sidecar might write it. */
function frame(body, header = "Content-Length") {
  const bytes = Buffer.from(typeof body === "string" ? body : JSON.stringify({ jsonrpc: "2.0", ...body }));
  return Buffer.concat([Buffer.from(`Content-Type: x\r\n${header}: ${bytes.length}\r\n\r\n`), bytes]);
}

/** A sidecar over two streams, and the end that writes what it says. */
async function connected() {
  const [toHost, fromHost] = [new PassThrough(), new PassThrough()];
  fromHost.resume();
  const agent = { protocolVersion: "1.7", more: 1 };
  toHost.write(frame({ id: 0, result: { capabilities: { experimental: { agentSidecar: agent } } } }));
  return { sidecar: await Sidecar.connect(toHost, fromHost, { limits: { exitMs: 10 } }), toHost };
}

const ANSWERED = frame({ id: 1, result: { sessionId: "s", runId: "r", stopReason: "stop", later: true } });

test("what is said right before the end is heard, and then the end", async () => {
  const { sidecar, toHost } = await connected();
  const run = sidecar.submit({ prompt: "hi", runId: "r" });
  const changed = frame({ method: "tools/changed", params: {} });
  toHost.end(Buffer.concat([...Array(30).fill(changed), ANSWERED]));
  assert.equal((await run.result()).stopReason, "stop");
  await assert.rejects(sidecar.submit("more").result(), /closed the connection/);
  await sidecar.close();
});

test("frames are read however their bytes were cut, and odd ones are passed over", async () => {
  const event = (seq, fields) => ({ method: "agent/event", params: { sessionId: "s", runId: "r", seq, event: fields } });
  const stream = Buffer.concat([
    frame("no json"),
    frame("[1, 2]"),
    frame("null"),
    frame({ method: "$/cancelRequest" }),
    frame({ method: "$/cancelRequest", params: { id: "nobody's" } }),
    frame({ method: "agent/event", params: null }),
    frame({ id: 99, result: "nobody asked" }),
    frame(event(0, { type: "somethingNew", with: { more: 1 } })),
    frame(event(1, { type: "assistantTextDelta", text: "Grüße 🎈" }), "content-LENGTH"),
    ANSWERED,
  ]);
  for (const size of [1, 2, 3, 7, 64, stream.length]) {
    const { sidecar, toHost } = await connected();
    const run = sidecar.submit({ prompt: "hi", runId: "r" });
    for (let at = 0; at < stream.length; at += size) toHost.write(stream.subarray(at, at + size));
    const events = await all(run);
    assert.deepEqual(events.map(({ type }) => type), ["somethingNew", "assistantTextDelta"], `cut every ${size} bytes`);
    assert.equal(events[1].text, "Grüße 🎈");
    assert.equal((await run.result()).stopReason, "stop");
    await sidecar.close();
  }
});
