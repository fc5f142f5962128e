// What a person does with the extension, in one window and one session of it; prints what was seen as JSON.

import { readdir, readFile, readlink, writeFile } from "node:fs/promises";

import { say, until, Workbench } from "./workbench.mjs";

const given = JSON.parse(process.argv[2]);
const seen = {};

/** The processes that are a sidecar of this workspace. */
async function sidecars() {
  const found = [];
  for (const pid of (await readdir("/proc")).filter((name) => /^\d+$/.test(name))) {
    try {
      const words = (await readFile(`/proc/${pid}/cmdline`, "utf8")).split("\0");
      if (words.includes("sidecar") && (await readlink(`/proc/${pid}/cwd`)) === given.folder) found.push(Number(pid));
    } catch {
      // It has just ended.
    }
  }
  return found;
}

const texts = (frame, selector) => frame.locator(selector).allInnerTexts();
const file = (name) => readFile(`${given.folder}/${name}`, "utf8").catch(() => null);

/** The note at the end of the conversation, once one is there that was not before. */
async function ending(chat, before) {
  await until(async () => (await chat.locator(".note").count()) > before, "the end of the run");
  return (await texts(chat, ".note")).at(-1);
}

async function restricted(bench) {
  await bench.command("Agent Sidecar: Open the Chat");
  const chat = await bench.chat();
  await chat.locator(".notice").waitFor();
  seen.restricted = {
    notice: await chat.locator(".notice p").innerText(),
    isDisabled: await chat.locator("textarea").isDisabled(),
    statusBar: await bench.page.locator(".statusbar-item", { hasText: "Sidecar" }).getAttribute("aria-label"),
  };
  await bench.command("Agent Sidecar: Restart the Sidecar"); // Leads to the editor's own question.
  const trust = bench.page.locator(".workspace-trust-editor .workspace-trust-buttons-row a").first();
  await trust.waitFor();
  await bench.picture("restricted");
  seen.restricted.processes = await sidecars();
  await trust.click();
  await until(async () => (await sidecars()).length === 1, "the sidecar");
  await until(() => chat.locator("textarea").isEnabled(), "the prompt");
  await bench.command("View: Close All Editors");
}

async function streaming(bench) {
  await bench.openFile("notes.txt");
  await bench.command("Agent Sidecar: Ask About the Selection");
  const chat = await bench.chat();
  await chat.locator(".prompt .attached li").first().waitFor();
  seen.attached = await texts(chat, ".prompt .attached li span");
  await say(chat, "What do the notes say?");
  const answer = chat.locator(".answer").first();
  const early = await until(() => answer.innerText().catch(() => ""), "the first words");
  const later = await until(async () => {
    const text = await answer.innerText();
    return text.length > early.length && text;
  }, "more words");
  seen.streaming = { early, later, isBusy: await answer.getAttribute("aria-busy") };
  return chat;
}

async function edit(bench, chat) {
  await chat.locator(".question .diff").waitFor();
  seen.question = {
    heading: await chat.locator(".question h3").innerText(),
    added: await texts(chat, ".diff .added"),
    removed: await texts(chat, ".diff .removed"),
    answers: await chat.locator(".question button[data-decision]").allTextContents(),
    state: await chat.locator(".call .state").last().innerText(),
    statusBar: await bench.page.locator(".statusbar-item", { hasText: "Sidecar" }).innerText(),
    spoken: await chat.locator("[role=status]").innerText(),
  };
  await bench.command("Agent Sidecar: Answer the Question");
  seen.question.focused = await until(() => chat.evaluate(() => document.activeElement?.getAttribute("data-decision")), "the focus");
  await bench.picture("question");
  await chat.getByRole("button", { name: "Show diff" }).click();
  await bench.page.locator(".tab", { hasText: "notes.txt (proposed)" }).waitFor();
  await bench.page.locator(".monaco-diff-editor .view-lines", { hasText: "third line" }).first().waitFor();
  await bench.picture("diff");
  await chat.locator('[data-decision="allowOnce"]').click();
  await bench.page.locator(".tab", { hasText: "notes.txt (proposed)" }).waitFor({ state: "detached" });
  await bench.page.locator(".editor-instance .view-lines", { hasText: "third line" }).waitFor();
  seen.edited = { buffer: lines(await bench.editorText()), disk: await file("notes.txt"), ending: await ending(chat, 0) };
  await bench.page.locator(".editor-instance .view-lines").click();
  await bench.page.keyboard.press("Control+Z");
  await bench.page.locator(".editor-instance .view-lines", { hasText: "second line" }).waitFor();
  seen.undone = lines(await bench.editorText());
}

/** As written: Monaco shows spaces that do not break. */
const lines = (text) => text.replaceAll("\u00a0", " ").split("\n");

async function denied(_, chat) {
  await say(chat, "Write a file.");
  await chat.locator(".question").waitFor();
  await chat.locator(".denials input").fill("not this one");
  await chat.locator(".denials input").press("Enter");
  seen.denied = { ending: await ending(chat, 1), state: await chat.locator(".call .state").last().innerText() };
  await chat.locator(".call summary").last().click();
  seen.denied.told = (await texts(chat, ".call-body pre")).at(-1);
  seen.denied.disk = await file("new.txt");
}

async function remembered(_, chat) {
  await say(chat, "Write it twice.");
  await chat.locator('[data-decision="allowSession"]').click();
  seen.remembered = { ending: await ending(chat, 2), disk: await file("kept.txt"), questions: await chat.locator(".question").count() };
}

async function stopped(_, chat) {
  await say(chat, "Count for a long time.");
  await chat.locator(".answer.streaming").waitFor();
  await chat.getByRole("button", { name: "Stop" }).click();
  seen.stopped = { ending: await ending(chat, 3), text: (await texts(chat, ".answer")).at(-1) };
}

async function killed(bench, chat) {
  await say(chat, "Count again.");
  const answer = chat.locator(".answer.streaming").last();
  await answer.waitFor();
  await until(async () => /one two three/.test(await answer.innerText()), "some words");
  const [pid] = await sidecars();
  process.kill(pid, "SIGKILL");
  seen.killed = { ending: await ending(chat, 4), text: (await texts(chat, ".answer")).at(-1) };
  await say(chat, "Are you there?");
  seen.killed.next = await ending(chat, 5);
  seen.killed.answer = (await texts(chat, ".answer")).at(-1);
  const [next] = await sidecars();
  seen.killed.isAnother = next !== undefined && next !== pid;
  await bench.picture("after-the-crash");
}

/** What is shown of the conversation, with nothing that a reload may change. */
async function shown(chat) {
  return chat.locator("#conversation > *").evaluateAll((nodes) =>
    nodes.map((node) => node.querySelector("summary")?.innerText.replaceAll("\n", " ") ?? node.innerText),
  );
}

async function reloaded(bench, chat) {
  const before = await shown(chat);
  await bench.goto(given.folder);
  await bench.command("Agent Sidecar: Open the Chat");
  const again = await bench.chat();
  await until(async () => (await again.locator("#conversation > .note").count()) === 6, "the conversation");
  seen.reloaded = { before, after: await shown(again) };
}

async function tree(bench) {
  await bench.page.locator(".pane-header", { hasText: "Servers and Tools" }).click();
  const rows = bench.page.locator('.pane:has(.pane-header:has-text("Servers and Tools")) .monaco-list-row');
  const server = rows.filter({ hasText: "demo" }).first();
  await server.waitFor();
  await until(async () => /2 tools/.test(await server.innerText()), "the server's tools");
  const row = async () => (await rows.allInnerTexts()).map((text) => text.replaceAll("\n", " "));
  seen.tree = { rows: await row() };
  await server.click();
  await server.getByRole("button", { name: "Restart the Server" }).click();
  await rows.filter({ hasText: "starting" }).first().waitFor().catch(() => undefined); // It may be too quick to be seen.
  await until(async () => (await row()).some((text) => /demo.*2 tools/.test(text)), "the server again");
  await bench.picture("tree");
  await bench.page.locator(".pane-header", { hasText: "Servers and Tools" }).click();
}

async function sessions(bench) {
  await bench.command("Agent Sidecar: New Conversation");
  const chat = await bench.chat();
  await chat.locator(".empty").waitFor();
  await bench.command("Agent Sidecar: Conversations…");
  const row = bench.page.locator(".quick-input-list .monaco-list-row").first();
  await row.waitFor();
  seen.sessions = { first: await row.innerText() };
  await row.click();
  await chat.locator(".user").first().waitFor();
  seen.sessions.prompt = await chat.locator(".user .said").first().innerText();
}

/** A key goes to the sidecar that is started then. */
async function key(bench) {
  const [before] = await sidecars();
  await bench.command("Agent Sidecar: Set a Key…");
  await bench.page.locator(".quick-input-list .monaco-list-row").filter({ hasText: "OPENROUTER_API_KEY" }).click();
  const field = bench.page.locator(".quick-input-widget input[type=password]:visible");
  await field.fill(given.key);
  await bench.page.keyboard.press("Enter");
  const [after] = await until(async () => {
    const found = await sidecars();
    return found.length === 1 && found[0] !== before && found;
  }, "another sidecar");
  const environment = await readFile(`/proc/${after}/environ`, "utf8");
  seen.key = environment.split("\0").find((entry) => entry.startsWith("OPENROUTER_API_KEY="));
}

/** Keys that are pressed while 1,000 deltas a second come in. */
async function typing(bench) {
  await writeFile(`${given.folder}/.vscode/settings.json`, JSON.stringify({ "agentSidecar.model": "fast/m" }));
  await bench.command("Agent Sidecar: New Conversation");
  const chat = await bench.chat();
  await chat.locator(".model", { hasText: "fast/m" }).waitFor();
  await say(chat, "Talk fast.");
  const answer = chat.locator(".answer.streaming");
  await answer.waitFor();
  const length = () => answer.evaluate((node) => node.textContent.length);
  const before = await length();
  const box = chat.locator("textarea");
  await box.pressSequentially(given.typed);
  seen.typing = { text: await box.inputValue(), grownBy: (await length()) - before };
  await bench.picture("fast");
  await box.press("Escape");
  seen.typing.ending = await ending(chat, 0);
}

const bench = await Workbench.open(given);
try {
  await restricted(bench);
  const chat = await streaming(bench);
  for (const part of [edit, denied, remembered, stopped, killed, reloaded, tree, sessions, key, typing]) {
    const began = Date.now();
    await part(bench, chat);
    if (process.env.SHOW_TIMES) console.error(part.name, Date.now() - began, "ms");
  }
  seen.violations = bench.violations;
} catch (error) {
  await bench.picture("failed");
  seen.failure = String(error.stack ?? error);
} finally {
  await bench.close();
}
console.log(JSON.stringify(seen));
