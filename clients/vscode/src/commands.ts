// The commands, each a line or two on the parts that do the work.

import * as vscode from "vscode";

import { fromEditor } from "./attachments";
import type { ChatView } from "./chat-view";
import type { Chats } from "./chats";
import { messageOf } from "./errors";
import { install } from "./install";
import type { Keys } from "./keys";
import { selectModel } from "./models";
import type { Questions } from "./questions";
import { showRemembered } from "./remembered";
import { pickSession } from "./sessions";
import { escapeHidden } from "./common/text";
import type { Sidecar } from "./sidecar";
import type { ServerNode } from "./tree";

export interface Parts {
  sidecar: Sidecar;
  chats: Chats;
  questions: Questions;
  view: ChatView;
  keys: Keys;
  log: vscode.LogOutputChannel;
  /** Where the extension's own virtual environment is. */
  environment: vscode.Uri;
}

type Command = (parts: Parts, argument: unknown) => Promise<unknown> | unknown;

const COMMANDS: Record<string, Command> = {
  open: ({ view }) => view.focus("prompt"),
  ask,
  askSelection,
  stop: ({ chats }) => chats.current.stop(),
  approve,
  newSession,
  sessions: async ({ sidecar, chats, view }) => (await pickSession(sidecar, chats)) && view.focus("prompt"),
  showLog: ({ log }) => log.show(true),
  restart: ({ sidecar }) => sidecar.restart(),
  trust,
  install: installNow,
  locate: () => vscode.commands.executeCommand("workbench.action.openSettings", "agentSidecar.command"),
  setKey: async ({ keys, sidecar }) => (await keys.ask()) && sidecar.restart(),
  selectModel: ({ sidecar }) => selectModel(sidecar),
  remembered: ({ sidecar, chats }) => showRemembered(sidecar, chats.current.sessionId),
  restartServer: ({ sidecar }, node) => isServer(node) && sidecar.request("mcp/restart", { name: node.server.name }),
  stopServer: ({ sidecar }, node) => isServer(node) && sidecar.request("mcp/disconnect", { name: node.server.name }),
  showServerLog,
};

/** Needs nothing of the sidecar, so that it works in a workspace that is not trusted, too. */
const ALWAYS = new Set(["open", "trust", "showLog", "locate"]);

export function registerCommands(parts: Parts): vscode.Disposable {
  const registrations = Object.entries(COMMANDS).map(([name, run]) =>
    vscode.commands.registerCommand(`agentSidecar.${name}`, async (argument: unknown) => {
      if (!vscode.workspace.isTrusted && !ALWAYS.has(name)) {
        await trust(parts);
        return;
      }
      try {
        await run(parts, argument);
      } catch (error) {
        await tell(parts, error);
      }
    }),
  );
  return vscode.Disposable.from(...registrations);
}

async function tell({ log }: Parts, error: unknown): Promise<void> {
  log.error(messageOf(error));
  if ((await vscode.window.showErrorMessage(`Agent Sidecar: ${messageOf(error)}`, "Show Log")) !== undefined) {
    log.show();
  }
}

async function ask({ chats, view }: Parts, argument: unknown): Promise<void> {
  const given = typeof argument === "string" ? argument : undefined;
  const text = given ?? (await vscode.window.showInputBox({ title: "Ask the agent", prompt: "What should it do?" }));
  if (text?.trim()) {
    await view.focus("prompt");
    await chats.current.ask(text);
  }
}

async function askSelection({ chats, view }: Parts): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (editor) {
    chats.current.attach(fromEditor(editor));
  }
  await view.focus("prompt");
}

async function approve({ chats, questions, view }: Parts): Promise<void> {
  const question = questions.oldest;
  if (!question) {
    void vscode.window.showInformationMessage("Agent Sidecar: no question is waiting");
    return;
  }
  if (question.sessionId && chats.ofRun(question.runId) !== chats.current) {
    await chats.resume(question.sessionId);
  }
  await view.focus("question");
}

async function newSession({ chats, view }: Parts): Promise<void> {
  chats.begin();
  await view.focus("prompt");
}

async function trust({ sidecar }: Parts): Promise<void> {
  if (!vscode.workspace.isTrusted) {
    await vscode.commands.executeCommand("workbench.trust.manage");
    return;
  }
  await sidecar.restart(); // It asks again what nobody has decided yet.
}

async function installNow({ environment, sidecar, log }: Parts): Promise<void> {
  try {
    await install(environment, log);
  } catch (error) {
    throw new Error(`it was not installed: ${messageOf(error)}`, { cause: error });
  }
  await sidecar.restart();
  void vscode.window.showInformationMessage("Agent Sidecar is installed and running");
}

function showServerLog({ log }: Parts, node: unknown): void {
  if (!isServer(node)) {
    return;
  }
  const { name, status, error } = node.server;
  log.info(`server ${name} is ${status}${error ? `: ${escapeHidden(error.message)}` : ""}`);
  for (const line of (error?.stderrTail ?? "").split("\n").filter(Boolean)) {
    log.info(`${name} | ${escapeHidden(line)}`);
  }
  log.show(true);
}

function isServer(node: unknown): node is ServerNode {
  return typeof node === "object" && node !== null && "kind" in node && node.kind === "server";
}
