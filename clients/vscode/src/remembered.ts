// What people have allowed for good: shown, and taken back.

import type { PermissionRule } from "agent-sidecar-client/protocol";
import * as vscode from "vscode";

import { escapeLine } from "./common/text";
import type { Sidecar } from "./sidecar";

const FORGET: vscode.QuickInputButton = { iconPath: new vscode.ThemeIcon("trash"), tooltip: "Forget this choice" };

interface RuleItem extends vscode.QuickPickItem {
  rule?: PermissionRule;
  sessionId?: string;
}

/** Shows the rules in force, those of the session first. A button takes one back. */
export async function showRemembered(sidecar: Sidecar, sessionId: string | undefined): Promise<void> {
  const pick = vscode.window.createQuickPick<RuleItem>();
  pick.title = "Remembered choices and rules";
  pick.placeholder = "What runs without a question, and what never runs";
  const fill = async (): Promise<void> => {
    pick.items = await itemsOf(sidecar, sessionId);
  };
  pick.onDidTriggerItemButton(({ item }) => {
    void forget(sidecar, item)
      .then(fill)
      .catch((error: unknown) => vscode.window.showErrorMessage(`Agent Sidecar: ${String(error)}`));
  });
  pick.onDidAccept(() => pick.hide());
  pick.onDidHide(() => pick.dispose());
  await fill();
  pick.show();
}

async function itemsOf(sidecar: Sidecar, sessionId: string | undefined): Promise<RuleItem[]> {
  const everywhere = (await sidecar.request("permissions/get", {})).rules;
  const here = sessionId ? (await sidecar.request("permissions/get", { sessionId })).rules : [];
  const known = new Set(everywhere.map((rule) => JSON.stringify(rule)));
  const ofSession = here.filter((rule) => !known.has(JSON.stringify(rule)));
  const items = [
    ...ofSession.map((rule) => itemOf(rule, "this conversation", sessionId)),
    ...everywhere.map((rule) => itemOf(rule, "this workspace", undefined)),
  ];
  return items.length > 0 ? items : [{ label: "Nothing is remembered", description: "every question is asked" }];
}

function itemOf(rule: PermissionRule, where: string, sessionId: string | undefined): RuleItem {
  const conditions = Object.entries(rule.arguments ?? {}).map(([name, glob]) => `${name}=${glob}`);
  return {
    label: `$(${rule.decision === "allow" ? "check" : rule.decision === "deny" ? "circle-slash" : "question"}) ${escapeLine(rule.tool)}`,
    description: `${rule.decision} in ${where}`,
    detail: conditions.length > 0 ? escapeLine(conditions.join("  ")) : "whatever its arguments",
    buttons: [FORGET],
    rule,
    sessionId,
  };
}

async function forget(sidecar: Sidecar, { rule, sessionId }: RuleItem): Promise<void> {
  const scope = sessionId ? ({ scope: "session", sessionId } as const) : ({ scope: "workspace" } as const);
  const { rules } = await sidecar.request("permissions/get", sessionId ? { sessionId } : {});
  const rest = rules.filter((other) => JSON.stringify(other) !== JSON.stringify(rule));
  await sidecar.request("permissions/set", { ...scope, rules: rest });
}
