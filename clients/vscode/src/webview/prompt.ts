// Where the person writes, and what stands around it: notices, what goes along, the model, send and stop.

import type { ChatStatus, FromChat, Notice } from "../common/messages";
import { button, element } from "./dom";

export interface Kept {
  draft: string;
}

export class Prompt {
  private readonly text = element("textarea", { rows: "1", "aria-label": "Ask the agent", placeholder: "Ask the agent…" });
  private readonly notice = element("div", { class: "notice", role: "alert", hidden: true });
  private readonly attached = element("ul", { class: "attached", "aria-label": "Goes along with the prompt" });
  private readonly model = button("", () => this.tell({ type: "run", command: "selectModel" }), { class: "quiet model", title: "Select a model" });
  private readonly sendButton = button("Send", () => this.send(), { class: "primary", title: "Send (Enter)" });
  private readonly stopButton = button("Stop", () => this.tell({ type: "stop" }), { class: "secondary", title: "Stop the run (Escape)" });
  private status: ChatStatus | undefined;

  constructor(
    place: HTMLElement,
    private readonly tell: (message: FromChat) => void,
    private readonly keep: (kept: Kept) => void,
    kept: Kept | undefined,
  ) {
    this.text.value = kept?.draft ?? "";
    this.text.addEventListener("input", () => this.edited());
    this.text.addEventListener("keydown", (event) => this.key(event));
    const attach = button("+", () => this.tell({ type: "attach" }), { class: "quiet attach", "aria-label": "Add context", title: "Take the selection of the editor along, or its whole file" });
    attach.append(element("span", { class: "word" }, " Context"));
    const row = element("div", { class: "row" }, attach, this.model, element("span", { class: "space" }), this.stopButton, this.sendButton);
    place.append(this.notice, element("div", { class: "prompt" }, this.attached, this.text, row));
    this.fit();
  }

  show(status: ChatStatus): void {
    const before = this.status;
    this.status = status;
    this.stopButton.hidden = !status.isRunning;
    this.text.disabled = !status.isUsable;
    this.sendButton.disabled = !status.isUsable;
    this.sendButton.textContent = status.isRunning ? "Add" : "Send";
    this.text.placeholder = status.isRunning ? "Add to this run…" : "Ask the agent…";
    this.model.textContent = status.model;
    this.attached.replaceChildren(...status.attachments.map((name, index) => this.attachment(name, index)));
    if (JSON.stringify(before?.notice) !== JSON.stringify(status.notice)) {
      this.showNotice(status.notice);
    }
  }

  focus(): void {
    this.text.focus();
  }

  private send(): void {
    const text = this.text.value.trim();
    if (text === "" || !this.status?.isUsable) {
      return;
    }
    this.tell({ type: "ask", text });
    this.text.value = "";
    this.edited();
    this.text.focus();
  }

  private key(event: KeyboardEvent): void {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      this.send();
    } else if (event.key === "Escape" && this.status?.isRunning) {
      this.tell({ type: "stop" });
    }
  }

  private edited(): void {
    this.keep({ draft: this.text.value });
    this.fit();
  }

  /** As high as its text, up to a limit that the style sheet sets. */
  private fit(): void {
    this.text.rows = Math.min(10, Math.max(1, this.text.value.split("\n").length));
  }

  private attachment(name: string, index: number): HTMLElement {
    const remove = button("×", () => this.tell({ type: "detach", index }), { class: "quiet", "aria-label": `Leave ${name} out` });
    return element("li", {}, element("span", {}, name), remove);
  }

  private showNotice(notice: Notice | undefined): void {
    this.notice.hidden = notice === undefined;
    this.notice.className = `notice ${notice?.tone ?? ""}`;
    const actions = (notice?.actions ?? []).map(({ label, command }, index) =>
      button(label, () => this.tell({ type: "run", command }), { class: index === 0 ? "primary" : "secondary" }),
    );
    this.notice.replaceChildren(element("p", {}, notice?.text ?? ""), element("div", { class: "row" }, ...actions));
  }
}
