// One item in the status bar: how the sidecar is, and whether somebody is asked.

import * as vscode from "vscode";

import type { Chats } from "./chats";
import type { Questions } from "./questions";
import type { Sidecar } from "./sidecar";

export function showStatus(sidecar: Sidecar, chats: Chats, questions: Questions): vscode.Disposable {
  const item = vscode.window.createStatusBarItem("agentSidecar.status", vscode.StatusBarAlignment.Right, 90);
  item.name = "Agent Sidecar";
  const update = (): void => {
    Object.assign(item, look(sidecar, chats, questions));
    item.accessibilityInformation = { label: `Agent Sidecar: ${String(item.tooltip)}`, role: "button" };
    item.show();
  };
  update();
  return vscode.Disposable.from(
    item,
    sidecar.onStateChanged(update),
    chats.onStatusChanged(update),
    questions.onChanged(update),
    vscode.workspace.onDidGrantWorkspaceTrust(update),
  );
}

type Look = Pick<vscode.StatusBarItem, "text" | "tooltip" | "command" | "backgroundColor">;

function look(sidecar: Sidecar, chats: Chats, questions: Questions): Look {
  const open: Look = { text: "$(hubot) Sidecar", tooltip: "Open the chat", command: "agentSidecar.open", backgroundColor: undefined };
  if (!vscode.workspace.isTrusted) {
    return { ...open, text: "$(shield) Sidecar", tooltip: "Nothing is started in a workspace that is not trusted", command: "agentSidecar.trust" };
  }
  if (questions.count > 0) {
    const tooltip = questions.count === 1 ? "A question waits for your answer" : `${questions.count} questions wait for your answer`;
    const backgroundColor = new vscode.ThemeColor("statusBarItem.warningBackground");
    return { text: `$(bell-dot) Sidecar asks`, tooltip, command: "agentSidecar.approve", backgroundColor };
  }
  const state = sidecar.state;
  switch (state.kind) {
    case "starting":
      return { ...open, text: "$(loading~spin) Sidecar", tooltip: "The sidecar is being started" };
    case "missing":
      return { ...open, text: "$(warning) Sidecar", tooltip: "agent-sidecar was not found; open the chat to install it" };
    case "failed":
      return { ...open, text: "$(error) Sidecar", tooltip: state.message };
    default:
      break;
  }
  if (chats.running.length > 0) {
    const tooltip = chats.running.length === 1 ? "A run goes on" : `${chats.running.length} runs go on`;
    return { ...open, text: "$(loading~spin) Sidecar", tooltip };
  }
  return open;
}
