// A host for the kit, made of the extension in the real VS Code: it does what AGENT_SIDECAR_SCENARIO says as a person
// would, in a window of its own. `node vscode.mjs GIVEN`; GIVEN is what the test says of the editor, as JSON.
//
// The contract is in protocol.md, chapter Conformance. What it prints is what stands in the chat.
import { spawn } from "node:child_process";
import { mkdir, mkdtemp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { say, until, Workbench } from "../../vscode/workbench.mjs";

const given = JSON.parse(process.argv[2]);
const scenario = JSON.parse(process.env.AGENT_SIDECAR_SCENARIO);

const UNSUPPORTED = {
  tool: "tools other than the editor's own",
  model: "models where the editor has none",
};
/** A run, or the end of the sidecar, is waited for no longer. */
const BOUND_MS = 60_000;

const print = (line) => console.log(JSON.stringify(line));

function unsupported() {
  if (scenario.input?.action === "decline") return "declining, which is the same as closing here";
  return Object.entries(UNSUPPORTED).find(([what]) => scenario[what])?.[1];
}

// What a person does when asked -------------------------------------------------------------------------------

async function answerQuestion(chat) {
  const question = chat.locator(".question").first();
  if (scenario.approve === "wait" || (await question.count()) === 0) return;
  const wanted = question.locator(`[data-decision="${scenario.approve ?? "deny"}"]`);
  const isOffered = (await wanted.count()) > 0;
  await (isOffered ? wanted : question.locator('[data-decision="deny"]')).click();
}

/** About a call that belongs to no run. */
async function answerDialog(page) {
  const dialog = page.locator(".monaco-dialog-box");
  const label = { allowOnce: "Allow once", deny: "Deny" }[scenario.approve];
  const button = dialog.getByRole("button", { name: label, exact: true });
  if (label !== undefined && (await button.count()) > 0) await button.click();
}

/** A field of the editor's, which stands above everything: a line to type in, or a list. */
async function enter(page) {
  const field = page.locator(".quick-input-widget:visible");
  const { action, content } = scenario.input ?? { action: "wait" }; // It may be a list that the driver has opened.
  if (action === "wait" || (await field.count()) === 0) return;
  if (action === "cancel") return page.keyboard.press("Escape");
  const input = field.locator("input[type=text]:visible");
  const shown = async () => `${await field.innerText()} ${await input.getAttribute("placeholder")}`;
  const asked = await shown();
  const value = typeof content === "object" ? content[Object.keys(content).find((name) => asked.includes(name))] : content;
  if (typeof value === "boolean") {
    const choice = field.locator(".monaco-list-row", { hasText: value ? "Yes" : "No" });
    if ((await choice.count()) > 0) await choice.click();
    return;
  }
  await input.fill(String(value));
  await page.keyboard.press("Enter");
  await until(async () => (await field.count()) === 0 || (await shown()) !== asked, "the next field");
}

async function visit(page) {
  const wanted = scenario.input?.action === "accept" ? "I Have Opened It" : "Cancel";
  const answer = page.locator(".monaco-dialog-box").getByRole("button", { name: wanted });
  if (scenario.input?.action !== "wait" && (await answer.count()) > 0) await answer.click();
}

/** Questions that the sidecar asks as a language server. */
async function answerMessage(page) {
  const toast = page.locator(".notification-toast").filter({ hasNotText: "uses the changed settings" });
  const message = toast.locator(".notification-list-item-buttons-container .monaco-button").first();
  if ((await message.count()) > 0) await message.click();
}

/** Does what is asked for, until the page is closed. */
async function attend({ page }, chat) {
  while (!page.isClosed()) {
    for (const duty of [() => answerQuestion(chat), () => answerDialog(page), () => enter(page), () => visit(page), () => answerMessage(page)]) {
      await duty().catch(() => undefined); // It went away while it was looked at.
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

// What stands in the chat -------------------------------------------------------------------------------------

const ENDING = /^(\d+ tokens in|Stopped|Cut off|Failed: |Ended: )/;

/** What was said and noted since the prompt with this number in the chat. */
function since(chat, number) {
  return chat.locator("#conversation > *").evaluateAll((nodes, count) => {
    const prompts = nodes.filter((node) => node.classList.contains("user"));
    const first = nodes.indexOf(prompts[count]);
    // What is said to a run that goes on is a prompt, too.
    const shown = first < 0 ? [] : nodes.slice(first + 1);
    const of = (kind) => shown.filter((node) => node.classList.contains(kind)).map((node) => node.textContent);
    return { text: of("answer").join(""), notes: of("note") };
  }, number);
}

async function ended(chat, number) {
  const found = async () => {
    const { text, notes } = await since(chat, number);
    const note = notes.find((each) => ENDING.test(each));
    return note !== undefined && { text, note };
  };
  return until(found, "the end of the run", BOUND_MS);
}

function line(run, { text, note }) {
  if (note.startsWith("Failed: ")) {
    const [, message, kind] = /^Failed: (.*?)(?: \((\w+)\))?$/s.exec(note);
    return { run, ended: "error", text, error: { message, kind } };
  }
  const word = note.startsWith("Stopped") ? "cancelled" : note.startsWith("Cut off: the answer") ? "length" : note.startsWith("Cut off") ? "contentFilter" : "stop";
  return { run, ended: word, text };
}

// Runs --------------------------------------------------------------------------------------------------------

async function act(chat) {
  if (!scenario.cancel && scenario.steer === undefined) return;
  await until(async () => (await since(chat, 0)).text !== "", "the first text");
  if (scenario.cancel) await chat.getByRole("button", { name: "Stop" }).click();
  else await say(chat, scenario.steer);
}

async function play(bench, chat) {
  const others = scenario.prompts.slice(1);
  for (const prompt of others) {
    await bench.command("Agent Sidecar: New Conversation");
    await chat.locator(".empty").waitFor();
    await say(chat, prompt);
  }
  await act(chat);
  if (others.length > 0) print(line(others.length, await ended(chat, 0)));
  for (const [position, prompt] of scenario.prompts.slice(0, -1).entries()) {
    const row = bench.page.locator(".quick-input-list .monaco-list-row").filter({ hasText: prompt });
    await bench.command("Agent Sidecar: Conversations…");
    await row.click();
    await chat.locator(".user", { hasText: prompt }).waitFor();
    print(line(position, await ended(chat, 0)));
  }
  if (others.length === 0) print(line(0, await ended(chat, 0)));
  for (const [position, prompt] of (scenario.then ?? []).entries()) {
    await say(chat, prompt);
    print(line(scenario.prompts.length + position, await ended(chat, position + 1)));
  }
}

/** The process that is the sidecar, as it has noted itself down. */
async function isGone(folder) {
  const pid = await readFile(join(folder, "pid"), "utf8").catch(() => undefined);
  try {
    return pid === undefined || (process.kill(Number(pid), 0), false);
  } catch {
    return true;
  }
}

/**
 * The host is the process in which the extension runs. Where this script is killed, so is that one: to the kit they are
 * the same. What is returned calls it off.
 */
function dieTogether(folder) {
  const program = `
    process.stdin.resume().on("end", () => {
      process.kill(Number(require("node:fs").readFileSync(process.argv[1], "utf8")), "SIGKILL");
    });`;
  const watch = spawn(process.execPath, ["-e", program, join(folder, "host")], { stdio: ["pipe", "ignore", "ignore"], detached: true });
  return () => watch.kill("SIGKILL");
}

const reason = unsupported();
if (reason) {
  print({ unsupported: reason });
} else {
  const folder = await mkdtemp(join(given.folders, "window-"));
  await writeFile(join(folder, "command.json"), process.env.AGENT_SIDECAR_COMMAND);
  if (scenario.startSecs !== undefined) {
    await mkdir(join(folder, ".vscode"));
    await writeFile(join(folder, ".vscode/settings.json"), JSON.stringify({ "agentSidecar.startTimeoutSecs": scenario.startSecs }));
  }
  const live = dieTogether(folder);
  const bench = await Workbench.openIn({ ...given, folder });
  try {
    // Asked at once, so that it waits for the very sidecar that the chat starts.
    await bench.command("Agent Sidecar: Ask…");
    await bench.page.locator(".quick-input-widget", { hasText: "Ask the agent" }).locator("input[type=text]:visible").fill(scenario.prompts[0]);
    await bench.page.keyboard.press("Enter");
    const chat = await bench.chat();
    void attend(bench, chat);
    await play(bench, chat);
  } catch (error) {
    await bench.page.screenshot({ path: join(folder, "failed.png") }).catch(() => undefined);
    throw error;
  } finally {
    await bench.page.close({ runBeforeUnload: false });
    await until(() => isGone(folder), "the end of the sidecar", BOUND_MS).finally(() => bench.close());
    live();
  }
}
