// What the editor offers the model as tools: what is selected, what is wrong, and a file brought into view.

import type { RunnableTool } from "agent-sidecar-client";
import type { JsonObject } from "agent-sidecar-client/protocol";
import * as vscode from "vscode";

import { inWorkspace } from "./diff";

/** Own choice: as many as a model can use. */
const MAX_PROBLEMS = 100;
const SEVERITIES = ["error", "warning", "information", "hint"] as const;

const PATH = { type: "string", description: "The path of a file, from the first workspace folder" };

export const EDITOR_TOOLS: RunnableTool[] = [
  {
    name: "editor_selection",
    description: "Which file the person looks at in the editor, and which lines are selected there",
    inputSchema: { type: "object", properties: {}, additionalProperties: false },
    requiredPermissions: ["read"],
    tags: ["editor"],
    run: selection,
  },
  {
    name: "editor_problems",
    description: "The errors and warnings that the editor shows, of one file or of all",
    inputSchema: { type: "object", properties: { path: PATH }, additionalProperties: false },
    requiredPermissions: ["read"],
    tags: ["editor"],
    run: problems,
  },
  {
    name: "editor_show",
    description: "Shows a file to the person in the editor",
    inputSchema: {
      type: "object",
      properties: { path: PATH, line: { type: "integer", minimum: 1, description: "The line to bring into view. Default 1" } },
      required: ["path"],
      additionalProperties: false,
    },
    requiredPermissions: ["read"],
    tags: ["editor"],
    run: show,
  },
];

function selection(): JsonObject {
  const editor = vscode.window.activeTextEditor ?? vscode.window.visibleTextEditors[0];
  if (!editor || !vscode.workspace.getWorkspaceFolder(editor.document.uri)) {
    return { path: null };
  }
  const { document, selection: range } = editor;
  return {
    path: vscode.workspace.asRelativePath(document.uri, false),
    language: document.languageId,
    startLine: range.start.line + 1,
    endLine: range.end.line + 1,
    text: document.getText(range),
  };
}

function problems({ path }: JsonObject): JsonObject {
  const file = typeof path === "string" ? fileAt(path) : undefined;
  const found = vscode.languages
    .getDiagnostics()
    .filter(([uri]) => (file ? uri.toString() === file.toString() : vscode.workspace.getWorkspaceFolder(uri) !== undefined))
    .flatMap(([uri, diagnostics]) => diagnostics.map((diagnostic) => described(uri, diagnostic)));
  return { problems: found.slice(0, MAX_PROBLEMS), total: found.length };
}

function described(uri: vscode.Uri, { range, severity, message, source }: vscode.Diagnostic): JsonObject {
  return {
    path: vscode.workspace.asRelativePath(uri, false),
    line: range.start.line + 1,
    severity: SEVERITIES[severity],
    message,
    source,
  };
}

async function show({ path, line }: JsonObject): Promise<JsonObject> {
  const position = new vscode.Position(typeof line === "number" ? line - 1 : 0, 0);
  const selected = new vscode.Range(position, position);
  await vscode.window.showTextDocument(fileAt(String(path)), { selection: selected, preserveFocus: true, preview: true });
  return { shown: path };
}

function fileAt(path: string): vscode.Uri {
  const file = inWorkspace(path);
  if (!file) {
    throw new Error(`${path} is not in this workspace`);
  }
  return file;
}
