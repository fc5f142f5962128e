// A Sidecar of the library over a scripted one (tests/harness/scripted_sidecar.py), and the scripts used most.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";

import { Sidecar } from "agent-sidecar-client";

export const ANSWER = {
  sessionId: "$sessionId",
  runId: "$runId",
  stopReason: "stop",
  message: { role: "assistant", content: "Hello" },
  turns: 1,
  usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
};

export const SAYS_HELLO = [
  { event: { type: "runStarted", model: "scripted/one", prompt: "hi" } },
  { event: { type: "assistantTextDelta", text: "Hel" } },
  { event: { type: "assistantTextDelta", text: "lo" } },
  { event: { type: "runCompleted", stopReason: "stop", usage: {} } },
  { result: ANSWER },
];

export function asks(method, params, how = "ask") {
  return [{ [how]: { id: "q-1", method, params } }, { result: ANSWER }];
}

/** An empty folder that is gone when the process of the tests is. */
export function temporaryFolder() {
  const folder = mkdtempSync(join(tmpdir(), "node-client-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

/** The settings that spawn a sidecar playing `script`, and what it has received so far. */
export function scripted(script, settings = {}) {
  const cwd = temporaryFolder();
  const [play, log] = [join(cwd, "script.json"), join(process.env.HEARD, `${basename(cwd)}.jsonl`)];
  writeFileSync(play, JSON.stringify(script));
  return {
    settings: { command: [process.env.PYTHON, process.env.SCRIPTED_SIDECAR, play, log], cwd, ...settings },
    received: () => readFileSync(log, "utf8").trimEnd().split("\n").map((line) => JSON.parse(line)),
    answers() {
      return this.received().filter((message) => ["q-1", "q-2"].includes(message.id));
    },
  };
}

/** Runs `use` with a sidecar that plays `script`, closes it, and gives what the script's side has received. */
export async function withScripted(script, settings, use) {
  const played = scripted(script, settings);
  const sidecar = await Sidecar.spawn(played.settings);
  try {
    await use(sidecar, played);
  } finally {
    await sidecar.close();
  }
  return played;
}

export async function all(events) {
  const found = [];
  for await (const event of events) found.push(event);
  return found;
}

/** A promise, and what settles it from outside. */
export function gate() {
  let open;
  const opened = new Promise((resolve) => {
    open = resolve;
  });
  return { opened, open };
}
