// A host for the kit, made of the client for Node: `node node_client.mjs` does what AGENT_SIDECAR_SCENARIO says.
//
// The contract is in protocol.md, chapter Conformance. What is here is what any program does that uses the client.
import { ClientError, RequestFailed, RunCancelled, Sidecar, SidecarExited } from "agent-sidecar-client";

const scenario = JSON.parse(process.env.AGENT_SIDECAR_SCENARIO);

const KNOWN = {
  prompts: [], then: [], approve: [], cancel: [], steer: [], resume: [], startSecs: [],
  input: ["action", "content"],
  tool: ["name", "description", "inputSchema", "reports", "fails", "waits"],
  model: ["deltas", "waits"],
};

/** Fields of the scenario that this host has never heard of. */
function unknown() {
  const outer = Object.keys(scenario).filter((name) => !(name in KNOWN));
  const inner = ["input", "tool", "model"].flatMap((name) =>
    Object.keys(scenario[name] ?? {})
      .filter((field) => !KNOWN[name].includes(field))
      .map((field) => `${name}.${field}`),
  );
  return [...outer, ...inner];
}

/** The question stays open until it is withdrawn. */
const untilWithdrawn = (signal) => new Promise((resolve) => signal.addEventListener("abort", resolve));

async function decide({ options }, { signal }) {
  const wanted = scenario.approve ?? "deny";
  if (wanted === "wait") await untilWithdrawn(signal);
  return options.some(({ decision }) => decision === wanted) ? wanted : "deny";
}

async function enter(_, { signal }) {
  const answer = scenario.input ?? { action: "cancel" };
  if (answer.action === "wait") await untilWithdrawn(signal);
  return answer;
}

async function* complete(_, { signal }) {
  yield* scenario.model.deltas;
  if (scenario.model.waits) await untilWithdrawn(signal);
}

function runnable({ name, description, inputSchema, reports, waits, fails }) {
  const run = async (input, { signal, progress }) => {
    if (reports) progress({ message: reports });
    if (waits) await untilWithdrawn(signal);
    if (fails) throw new Error(fails);
    return input;
  };
  return { name, description, inputSchema, run };
}

/** Watches a run to its end and tells of it. */
async function follow(run, number) {
  let text = "";
  const show = async (events) => {
    for await (const event of events) {
      if (event.type !== "assistantTextDelta") continue;
      if (text === "") await act(run);
      text += event.text;
    }
  };
  try {
    await show(run);
    tell(number, (await run.result()).stopReason, text);
  } catch (error) {
    if (!(error instanceof SidecarExited && scenario.resume)) return tell(number, ...ending(error, text));
    await sidecar.restart();
    const resumed = sidecar.resume(run);
    await show(resumed);
    tell(number, (await resumed.result()).stopReason, text);
  }
}

/** What the scenario wants done after the first words. */
async function act(run) {
  if (scenario.cancel) await run.cancel();
  if (scenario.steer !== undefined) await run.steer(scenario.steer);
}

function ending(error, text) {
  if (error instanceof RunCancelled) return ["cancelled", text];
  if (error instanceof RequestFailed) return ["error", text, { kind: error.kind, message: error.message }];
  if (error instanceof ClientError) return ["error", text, { message: error.message }];
  throw error;
}

function tell(run, ended, text, error) {
  console.log(JSON.stringify({ run, ended, text, error }));
}

async function play({ prompts, then: rest = [] }) {
  const runs = prompts.map((prompt) => sidecar.submit(prompt));
  await Promise.all(runs.map(follow));
  for (const [number, prompt] of rest.entries()) {
    const { sessionId } = runs[0];
    await follow(sidecar.submit({ prompt, sessionId }), runs.length + number);
  }
}

if (unknown().length > 0) {
  console.log(JSON.stringify({ unsupported: unknown().join(", ") }));
  process.exit();
}

let sidecar;
try {
  sidecar = await Sidecar.spawn({
    command: JSON.parse(process.env.AGENT_SIDECAR_COMMAND),
    onApproval: decide,
    onInput: enter,
    ...(scenario.model && { onModel: complete }),
    tools: scenario.tool ? [runnable(scenario.tool)] : [],
    limits: { exitMs: 1000, ...(scenario.startSecs && { startMs: scenario.startSecs * 1000 }) },
  });
  await play(scenario);
} catch (error) {
  if (sidecar) throw error;
  scenario.prompts.forEach((_, number) => tell(number, ...ending(error, "")));
} finally {
  await sidecar?.close();
}
