// A person's first minute: the extension is installed, and nothing else. Prints what was seen as JSON.

import { say, until, Workbench } from "./workbench.mjs";

const given = JSON.parse(process.argv[2]);
const seen = {};
/** Packages have to be fetched. */
const INSTALL_BOUND_MS = 150_000;

/** What the chat says of its state, once it is about this. */
async function notice(chat, about) {
  const told = chat.locator(".notice p");
  await until(async () => (await told.isVisible()) && (await told.innerText()).includes(about), about);
  return { text: await told.innerText(), actions: await chat.locator(".notice button").allInnerTexts() };
}

async function missing(bench) {
  await bench.command("Agent Sidecar: Open the Chat");
  const chat = await bench.chat();
  seen.missing = await notice(chat, "not found");
  await bench.picture("missing");
  return chat;
}

/** Presses the button; what the editor tells of it in the end. */
async function install(bench, chat, end) {
  await chat.getByRole("button", { name: "Install it for this editor" }).click();
  const told = bench.notification(end).first();
  await told.waitFor({ timeout: INSTALL_BOUND_MS });
  await bench.picture(`told-${given.hasPython ? "installed" : "no-python"}`);
  return told.innerText();
}

async function ask(chat) {
  await say(chat, "hello");
  await chat.locator(".note").waitFor();
  seen.answer = await chat.locator(".answer").innerText();
}

const bench = await Workbench.open(given);
try {
  const chat = await missing(bench);
  seen.told = await install(bench, chat, given.end);
  if (given.hasPython) await ask(chat);
} catch (error) {
  await bench.picture("failed");
  seen.failure = String(error);
} finally {
  await bench.close();
  console.log(JSON.stringify(seen));
}
