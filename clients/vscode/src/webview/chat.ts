// The chat's page: wires what the extension says to what is shown, and what is done here to the extension.

import type { FromChat, ToChat } from "../common/messages";
import { Announcer } from "./announcer";
import { Conversation } from "./conversation";
import { found } from "./dom";
import { Prompt, type Kept } from "./prompt";

interface Editor {
  postMessage(message: FromChat): void;
  getState(): Kept | undefined;
  setState(kept: Kept): void;
}

declare function acquireVsCodeApi(): Editor;

const editor = acquireVsCodeApi();
const tell = (message: FromChat): void => editor.postMessage(message);

const announcer = new Announcer(found("announcer", HTMLElement));
const place = found("conversation", HTMLElement);
const conversation = new Conversation(
  place,
  {
    answer: (requestId, { decision }, reason) => {
      tell({ type: "answer", requestId, decision, reason });
      prompt.focus(); // The button that had the focus goes away.
    },
    showDiff: (requestId) => tell({ type: "showDiff", requestId }),
  },
  (change, before) => announcer.changed(change, before),
);
const prompt = new Prompt(found("below", HTMLElement), tell, (kept) => editor.setState(kept), editor.getState());

place.addEventListener("click", (event) => {
  const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
  if (link) {
    event.preventDefault();
    event.stopPropagation();
    tell({ type: "open", href: link.getAttribute("href") ?? "" });
  }
});

window.addEventListener("keydown", () => conversation.yieldToKey(), { capture: true, passive: true });

window.addEventListener("message", ({ data }: MessageEvent<ToChat>) => {
  switch (data.type) {
    case "show":
      conversation.reset(data.entries);
      prompt.show(data.status);
      document.body.classList.toggle("hides-reasoning", !data.status.showsReasoning);
      return;
    case "changes":
      return conversation.take(data.changes);
    case "status":
      prompt.show(data.status);
      document.body.classList.toggle("hides-reasoning", !data.status.showsReasoning);
      return;
    case "focus":
      if (data.on === "prompt" || !conversation.focusQuestion()) {
        prompt.focus();
      }
      return;
  }
});

tell({ type: "ready" });
