// What streams in is gathered on its way to the chat, and shown where it is in nobody's way.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { Change } from "../src/common/entries";
import { Outgoing } from "../src/outgoing";
import { Frames } from "../src/webview/frames";

const append = (text: string): Change => ({ kind: "append", id: 1, text });

/** The browser's frames, one at a time. */
class Screen {
  private waiting = new Map<number, FrameRequestCallback>();
  private last = 0;

  constructor() {
    globalThis.requestAnimationFrame = (callback) => {
      this.waiting.set(++this.last, callback);
      return this.last;
    };
    globalThis.cancelAnimationFrame = (id) => void this.waiting.delete(id);
  }

  frame(): void {
    const callbacks = [...this.waiting.values()];
    this.waiting.clear();
    callbacks.forEach((callback) => callback(performance.now()));
  }
}

test("what comes alone is sent at once, what comes soon after it together", async () => {
  const sent: Change[][] = [];
  let arrived = (): void => undefined;
  const outgoing = new Outgoing((changes) => {
    sent.push(changes);
    arrived();
  });
  const next = (): Promise<void> => new Promise((resolve) => (arrived = resolve));
  outgoing.add(append("one "));
  await next();
  for (const text of ["two ", "three"]) {
    outgoing.add(append(text));
  }
  await next();
  assert.deepEqual(sent, [[append("one ")], [append("two three")]]);
});

test("the frame that shows a key holds nothing else, the next one what came meanwhile", () => {
  const screen = new Screen();
  let times = 0;
  const frames = new Frames(() => times++);
  frames.request();
  frames.yieldToKey();
  screen.frame();
  assert.equal(times, 0);
  screen.frame();
  assert.equal(times, 1);
});

test("where no key comes the next frame shows it", () => {
  const screen = new Screen();
  let times = 0;
  const frames = new Frames(() => times++);
  frames.request();
  frames.request();
  screen.frame();
  screen.frame();
  assert.equal(times, 1);
});
