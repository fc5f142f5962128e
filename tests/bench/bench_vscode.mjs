// Types into the chat, in turns while nothing goes on and while a model talks fast; prints how soon each key was shown.

import { until, Workbench } from "../vscode/workbench.mjs";

const given = JSON.parse(process.argv[2]);

/** 12 keys a second, as somebody types who types fast. */
const BETWEEN_KEYS_MS = 80;
/** The browser tells of no event that was shown sooner. */
const LEAST_MS = 16;

/** In the chat: gathers how long it takes from a key to the frame that shows it. */
function watch(leastMs) {
  window.shownAfterMs = [];
  new PerformanceObserver((list) => {
    const keys = list.getEntries().filter(({ name }) => name === "keydown");
    window.shownAfterMs.push(...keys.map(({ duration }) => duration));
  }).observe({ type: "event", durationThreshold: leastMs });
}

const rest = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

async function type(bench, chat) {
  const box = chat.locator("textarea");
  await box.focus();
  await chat.evaluate(() => (window.shownAfterMs = []));
  const began = Date.now();
  for (let count = 1; count <= given.keys; count++) {
    await bench.page.keyboard.press("abcdefghij"[count % 10]);
    await rest(began + count * BETWEEN_KEYS_MS - Date.now());
  }
  const seconds = (Date.now() - began) / 1000;
  await rest(500); // The last keys are told of.
  const told = await chat.evaluate(() => window.shownAfterMs);
  await box.fill("");
  return { shownAfterMs: [...told, ...Array(Math.max(0, given.keys - told.length)).fill(LEAST_MS)], seconds };
}

async function typeWhileItTalks(bench, chat) {
  const box = chat.locator("textarea");
  await box.fill("Talk fast.");
  await box.press("Enter");
  await chat.locator(".answer.streaming").waitFor();
  // The model counts its deltas.
  const deltas = () => chat.locator(".answer").evaluate((node) => Number(/(\d+)\s*$/.exec(node.textContent)?.[1] ?? 0));
  const before = await deltas();
  const typed = await type(bench, chat);
  const deltasPerSecond = ((await deltas()) - before) / typed.seconds;
  await box.press("Escape");
  await chat.locator(".note").waitFor();
  await bench.command("Agent Sidecar: New Conversation");
  await chat.locator(".empty").waitFor();
  return { ...typed, deltasPerSecond };
}

const bench = await Workbench.open(given);
const rounds = [];
try {
  await bench.command("Agent Sidecar: Open the Chat");
  const chat = await bench.chat();
  await until(() => chat.locator("textarea").isEnabled(), "the prompt");
  await chat.evaluate(watch, LEAST_MS);
  await type(bench, chat); // Warm.
  for (let round = 0; round < given.rounds; round++) {
    rounds.push({ idle: await type(bench, chat), streaming: await typeWhileItTalks(bench, chat) });
  }
} finally {
  await bench.close();
}
console.log(JSON.stringify({ rounds }));
