// Asks the person what a tool or a server wants to know: a list where there is a choice, else a line of text.

import type { RequestInputParams, RequestInputResult } from "agent-sidecar-client/protocol";
import * as vscode from "vscode";

import { choicesOf, fieldsOf, readTyped, type Field } from "./input-schema";
import { escapeHidden, escapeLine } from "./common/text";

/** The answer to `agent/requestInput`. */
export async function askInput(params: RequestInputParams, signal: AbortSignal): Promise<RequestInputResult> {
  if (params.url != null) {
    return askToVisit(params, params.url);
  }
  if (params.source === "workspace") {
    return askTrust(params);
  }
  const withdrawn = new vscode.CancellationTokenSource();
  signal.addEventListener("abort", () => withdrawn.cancel(), { once: true });
  const content = await askFields(params, withdrawn.token);
  return content === undefined ? { action: "cancel" } : { action: "accept", content };
}

async function askToVisit(params: RequestInputParams, url: string): Promise<RequestInputResult> {
  const detail = `${escapeHidden(params.message)}\n\n${escapeLine(url)}`;
  const [open, opened, decline] = ["Open in the Browser", "I Have Opened It", "Decline"] as const;
  const title = `${escapeLine(params.source)} asks you to visit a page`;
  const choice = await vscode.window.showInformationMessage(title, { modal: true, detail }, open, opened, decline);
  if (choice === open) {
    await vscode.env.openExternal(vscode.Uri.parse(url, true));
  }
  return { action: choice === undefined ? "cancel" : choice === decline ? "decline" : "accept" };
}

/** What the workspace brings along may be long and must be read whole: it is shown when the person wants to see it. */
async function askTrust(params: RequestInputParams): Promise<RequestInputResult> {
  const [review, never] = ["Review…", "Never"] as const;
  const head = "This workspace brings configuration for Agent Sidecar along. Nothing of it is used until you trust it.";
  const first = await vscode.window.showWarningMessage(head, review, "Not Now", never);
  if (first !== review) {
    return { action: "accept", content: { decision: first === never ? "never" : "notNow" } };
  }
  const detail = escapeHidden(params.message);
  const choice = await vscode.window.showWarningMessage("Trust this configuration?", { modal: true, detail }, "Trust", never);
  const decision = choice === "Trust" ? "trust" : choice === never ? "never" : "notNow";
  return { action: "accept", content: { decision } };
}

/** The fields one after the other; none where one was closed. */
async function askFields(params: RequestInputParams, token: vscode.CancellationToken): Promise<unknown> {
  const fields = fieldsOf(params.schema ?? undefined);
  const content: Record<string, unknown> = {};
  for (const [index, field] of fields.entries()) {
    const title = `${escapeLine(params.source)} asks${fields.length > 1 ? ` (${index + 1} of ${fields.length})` : ""}`;
    const value = await askValue(field, title, escapeLine(params.message), token);
    if (value === undefined) {
      return undefined;
    }
    if (field.name === undefined) {
      return value;
    }
    if (value !== "" || field.isRequired) {
      content[field.name] = value;
    }
  }
  return content;
}

async function askValue(field: Field, title: string, message: string, token: vscode.CancellationToken): Promise<unknown> {
  const prompt = field.label ? `${message}: ${escapeLine(field.label)}` : message;
  const choices = choicesOf(field.schema);
  if (choices) {
    const items = choices.map(({ label, value }) => ({ label: escapeLine(label), value }));
    const picked = await vscode.window.showQuickPick(items, { title, placeHolder: prompt, ignoreFocusOut: true }, token);
    return picked?.value;
  }
  const typed = await vscode.window.showInputBox(
    {
      title,
      prompt,
      value: field.schema.default === undefined ? undefined : String(field.schema.default),
      password: field.schema.format === "password",
      ignoreFocusOut: true,
      validateInput: (text) => readTyped(text, field).fault,
    },
    token,
  );
  return typed === undefined ? undefined : readTyped(typed, field).value;
}
