// The chat in the side bar: a webview that shows the current chat and says what the person does in it.

import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";

import * as vscode from "vscode";

import type { Chat } from "./chat";
import type { Chats } from "./chats";
import { page } from "./page";
import { Outgoing } from "./outgoing";
import type { ChatStatus, FromChat, ToChat } from "./common/messages";

export const CHAT_VIEW = "agentSidecar.chat";

/** What the chat shows beside the conversation, and what is done with what the person says. */
export interface ChatHost {
  status(): ChatStatus;
  receive(message: Exclude<FromChat, { type: "ready" }>): void;
  /** The chat came into view. */
  shown(): void;
}

export class ChatView implements vscode.WebviewViewProvider, vscode.Disposable {
  private view: vscode.WebviewView | undefined;
  private isReady = false;
  private focusOnReady: "prompt" | "question" | undefined;
  private readonly outgoing = new Outgoing((changes) => this.post({ type: "changes", changes }));
  private listening: vscode.Disposable | undefined;

  constructor(
    private readonly extensionUri: vscode.Uri,
    private readonly chats: Chats,
    private readonly host: ChatHost,
  ) {
    chats.onCurrentChanged(() => this.showAll());
  }

  get isVisible(): boolean {
    return this.view?.visible === true;
  }

  async resolveWebviewView(view: vscode.WebviewView): Promise<void> {
    this.view = view;
    view.onDidDispose(() => this.closed());
    const { webview } = view;
    webview.options = { enableScripts: true, localResourceRoots: [] };
    webview.onDidReceiveMessage((message: FromChat) => this.receive(message));
    this.host.shown();
    const [script, style] = await Promise.all([this.read("chat.js"), this.read("chat.css")]);
    webview.html = page({ nonce: randomBytes(18).toString("base64"), script, style });
  }

  /** Brings the chat into view and moves the focus there. */
  async focus(on: "prompt" | "question"): Promise<void> {
    this.focusOnReady = on;
    await vscode.commands.executeCommand(`${CHAT_VIEW}.focus`);
    if (this.isReady) {
      this.focusNow();
    }
  }

  /** What is beside the conversation is other than before. */
  refresh(): void {
    this.post({ type: "status", status: this.host.status() });
  }

  dispose(): void {
    this.closed();
  }

  private read(name: string): Promise<string> {
    return readFile(vscode.Uri.joinPath(this.extensionUri, "dist", name).fsPath, "utf8");
  }

  private receive(message: FromChat): void {
    if (message.type === "ready") {
      this.isReady = true;
      this.showAll();
      this.focusNow();
    } else {
      this.host.receive(message);
    }
  }

  private focusNow(): void {
    if (this.focusOnReady) {
      this.post({ type: "focus", on: this.focusOnReady });
      this.focusOnReady = undefined;
    }
  }

  private showAll(): void {
    const chat: Chat = this.chats.current;
    this.listening?.dispose();
    this.outgoing.clear();
    this.post({ type: "show", entries: chat.transcript.entries, status: this.host.status() });
    this.listening = chat.onChange((change) => this.outgoing.add(change));
  }

  private post(message: ToChat): void {
    if (this.isReady) {
      void this.view?.webview.postMessage(message);
    }
  }

  private closed(): void {
    this.view = undefined;
    this.isReady = false;
    this.listening?.dispose();
    this.outgoing.clear();
  }
}
