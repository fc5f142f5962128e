// Puts the parts together. Everything that it makes ends with the extension.

import type { RequestApprovalParams } from "agent-sidecar-client/protocol";
import * as vscode from "vscode";

import { ChatView, CHAT_VIEW } from "./chat-view";
import { Chats } from "./chats";
import { escapeHidden, escapeLine } from "./common/text";
import { registerCommands } from "./commands";
import { ProposedChanges } from "./diff";
import { complete } from "./editor-models";
import { EDITOR_TOOLS } from "./editor-tools";
import { cameIntoView, chatHost } from "./host";
import { askInput } from "./inputs";
import { Keys } from "./keys";
import type { Launch, Services } from "./life";
import { locate } from "./locate";
import { Questions } from "./questions";
import { needsRestart, optionsOf, readSettings, SECTION } from "./settings";
import { Sidecar } from "./sidecar";
import { showStatus } from "./status-bar";
import { TOOLS_VIEW, ToolTree } from "./tree";

/** The editor gives an extension 4 s to end: three waits, so that there is time for the force at their end. */
const LAST_GRACE_MS = 1_200;

let running: Sidecar | undefined;

export function activate(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel("Agent Sidecar", { log: true });
  const environment = vscode.Uri.joinPath(context.globalStorageUri, "environment");
  const keys = new Keys(context.secrets, context.globalState);
  const questions = new Questions();
  const changes = new ProposedChanges();

  const services: Services = {
    onApproval: (question, { signal }) => questions.ask(question, signal),
    onInput: (question, { signal }) => askInput(question, signal),
    onModel: complete,
    tools: EDITOR_TOOLS,
    takeEvent: (params) => {
      if (params.event.type === "approvalResolved") {
        questions.withdraw(params.event.requestId);
      }
      chats.receive(params);
    },
    listeners: {
      "tools/changed": () => tree.refreshSoon(),
      "mcp/statusChanged": () => tree.refreshSoon(),
    },
  };
  const sidecar = new Sidecar(log, () => prepare(context, keys, environment), services);
  running = sidecar;
  const chats = new Chats(sidecar, () => readSettings().model || undefined, context.workspaceState);
  const tree = new ToolTree(sidecar, log);
  const view = new ChatView(context.extensionUri, chats, chatHost({ sidecar, chats, questions, changes }));

  const refresh = (): void => view.refresh();
  context.subscriptions.push(
    log, sidecar, questions, changes, chats, tree, view,
    vscode.window.registerWebviewViewProvider(CHAT_VIEW, view),
    vscode.window.registerTreeDataProvider(TOOLS_VIEW, tree),
    showStatus(sidecar, chats, questions),
    registerCommands({ sidecar, chats, questions, view, keys, log, environment }),
    sidecar.onStateChanged(refresh),
    sidecar.onLost(() => questions.withdrawAll()),
    chats.onStatusChanged(refresh),
    showQuestions(questions, chats, view),
    questions.onClosed((requestId) => {
      chats.resolved(requestId);
      void changes.close(requestId);
    }),
    vscode.workspace.onDidGrantWorkspaceTrust(() => {
      refresh();
      void cameIntoView({ sidecar, chats });
    }),
    vscode.workspace.onDidChangeConfiguration((change) => void settingsChanged(change, sidecar, keys, refresh)),
  );
  void keys.moveOutOfSettings();
}

export async function deactivate(): Promise<void> {
  await running?.stop(LAST_GRACE_MS);
}

async function prepare(context: vscode.ExtensionContext, keys: Keys, environment: vscode.Uri): Promise<Launch> {
  if (!vscode.workspace.isTrusted) {
    throw new Error("nothing is started in a workspace that is not trusted");
  }
  const settings = readSettings();
  const nowhere = vscode.Uri.joinPath(context.globalStorageUri, "no-folder");
  return {
    found: await locate(settings.command, environment),
    env: { ...process.env, ...settings.env, ...(await keys.variables()) },
    // File tools stay inside the workspace; without one they get a folder that is empty.
    folder: (vscode.workspace.workspaceFolders?.[0]?.uri ?? nowhere).fsPath,
    options: optionsOf(settings),
    limitMs: settings.startTimeoutSecs * 1_000,
  };
}

/** A question goes into the chat. Who does not look at that chat is told where it is. */
function showQuestions(questions: Questions, chats: Chats, view: ChatView): vscode.Disposable {
  return questions.onAsked((params) => {
    if (params.runId == null) {
      void askInDialog(questions, params);
      return;
    }
    const chat = chats.ofRun(params.runId);
    if (!chat) {
      questions.withdraw(params.requestId); // Its run is over here.
      return;
    }
    chat.question(params);
    if (view.isVisible && chat === chats.current) {
      return;
    }
    void vscode.window.showInformationMessage(`Agent Sidecar asks whether ${params.toolName} may run`, "Show").then((choice) => {
      if (choice !== undefined) {
        void vscode.commands.executeCommand("agentSidecar.approve");
      }
    });
  });
}

/** About a call that no run has asked for: there is no conversation to show it in. */
async function askInDialog(questions: Questions, { requestId, title, reason, diff, options }: RequestApprovalParams): Promise<void> {
  const detail = escapeHidden([reason, diff].filter(Boolean).join("\n\n"));
  const items = options.map(({ decision, label }) => ({ title: escapeLine(label), decision, isCloseAffordance: decision === "deny" }));
  const choice = await vscode.window.showWarningMessage(escapeLine(title), { modal: true, detail }, ...items);
  questions.decide(requestId, choice?.decision ?? "deny");
}

async function settingsChanged(change: vscode.ConfigurationChangeEvent, sidecar: Sidecar, keys: Keys, refresh: () => void): Promise<void> {
  if (!change.affectsConfiguration(SECTION)) {
    return;
  }
  refresh();
  await keys.moveOutOfSettings();
  if (needsRestart(change) && sidecar.state.kind !== "stopped") {
    const restart = "Restart";
    const choice = await vscode.window.showInformationMessage("Agent Sidecar uses the changed settings when it is started again.", restart);
    if (choice === restart) {
      await vscode.commands.executeCommand("agentSidecar.restart");
    }
  }
}
