// What the chat shows beside the conversation, and what becomes of what the person does in it.

import * as vscode from "vscode";

import { fromEditor } from "./attachments";
import type { ChatHost } from "./chat-view";
import type { Chats } from "./chats";
import { inWorkspace, type ProposedChanges } from "./diff";
import type { Questions } from "./questions";
import { readSettings } from "./settings";
import { CHAT_COMMANDS, type ChatStatus, type FromChat, type Notice } from "./common/messages";
import type { Sidecar } from "./sidecar";

export interface HostParts {
  sidecar: Sidecar;
  chats: Chats;
  questions: Questions;
  changes: ProposedChanges;
}

export function chatHost(parts: HostParts): ChatHost {
  return {
    status: () => statusOf(parts),
    receive: (message) => void receive(parts, message),
    shown: () => void cameIntoView(parts),
  };
}

/** Starts the sidecar, so that tools are listed and the last conversation is shown. Why it cannot is in the status. */
export async function cameIntoView({ sidecar, chats }: Pick<HostParts, "sidecar" | "chats">): Promise<void> {
  if (!vscode.workspace.isTrusted) {
    return;
  }
  await sidecar.start().then(
    () => chats.restore(),
    () => undefined,
  );
}

async function receive({ chats, questions, changes }: HostParts, message: Parameters<ChatHost["receive"]>[0]): Promise<void> {
  switch (message.type) {
    case "ask":
      return vscode.workspace.isTrusted && message.text.trim() !== "" ? chats.current.ask(message.text) : undefined;
    case "stop":
      return chats.current.stop();
    case "answer":
      questions.decide(message.requestId, message.decision, message.reason);
      return;
    case "showDiff": {
      const question = questions.get(message.requestId);
      return question && changes.show(question);
    }
    case "open":
      return open(message.href);
    case "attach":
      return attach(chats);
    case "detach":
      return chats.current.detach(message.index);
    case "run":
      return run(message);
  }
}

async function run({ command }: Extract<FromChat, { type: "run" }>): Promise<void> {
  if (CHAT_COMMANDS.includes(command)) {
    await vscode.commands.executeCommand(`agentSidecar.${command}`);
  }
}

async function attach(chats: Chats): Promise<void> {
  const editor = vscode.window.activeTextEditor ?? vscode.window.visibleTextEditors[0];
  if (editor) {
    chats.current.attach(fromEditor(editor));
  } else {
    void vscode.window.showInformationMessage("Agent Sidecar: open a file first; its selection goes along, or the whole file");
  }
}

/** A link of an answer: a page in the browser, after the editor's own question, or a file of the workspace. */
async function open(href: string): Promise<void> {
  if (/^(https?|mailto):/i.test(href)) {
    await vscode.env.openExternal(vscode.Uri.parse(href, true));
    return;
  }
  const [path = "", line] = decodeURIComponent(href).split(/#L?|:(?=\d+$)/, 2);
  const file = inWorkspace(path);
  if (!file) {
    return;
  }
  const position = new vscode.Position(Math.max(0, (Number(line) || 1) - 1), 0);
  await vscode.window.showTextDocument(file, { selection: new vscode.Range(position, position), preview: true }).then(undefined, () => {
    void vscode.window.showInformationMessage(`Agent Sidecar: there is no file ${path} in this workspace`);
  });
}

function statusOf({ sidecar, chats }: HostParts): ChatStatus {
  const chat = chats.current;
  const { model, showReasoning } = readSettings();
  const notice = noticeOf(sidecar);
  return {
    isRunning: chat.isRunning,
    isUsable: vscode.workspace.isTrusted && sidecar.state.kind !== "missing",
    model: model || "default model",
    attachments: chat.attachments.map(({ name }) => name),
    notice,
    showsReasoning: showReasoning,
  };
}

function noticeOf(sidecar: Sidecar): Notice | undefined {
  if (!vscode.workspace.isTrusted) {
    return {
      text: "You have not trusted this workspace yet, so nothing is started here: no model is asked and no tool runs.",
      tone: "info",
      actions: [{ label: "Manage workspace trust", command: "trust" }],
    };
  }
  switch (sidecar.state.kind) {
    case "missing":
      return {
        text: "The program agent-sidecar was not found on PATH or in the Python environment.",
        tone: "error",
        actions: [
          { label: "Install it for this editor", command: "install" },
          { label: "Say where it is", command: "locate" },
          { label: "Look again", command: "restart" },
        ],
      };
    case "failed":
      return {
        text: sidecar.state.message,
        tone: "error",
        actions: [
          { label: "Start again", command: "restart" },
          { label: "Show the log", command: "showLog" },
        ],
      };
    default:
      return undefined;
  }
}
