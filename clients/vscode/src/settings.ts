// The settings, and what the sidecar is told of them.

import * as vscode from "vscode";

import { initializationOptions, type OptionSettings } from "./options";

export const SECTION = "agentSidecar";

export interface Settings extends OptionSettings {
  /** The command line that starts the sidecar; empty: it is looked for. */
  command: string[];
  /** Variables for its process. */
  env: Record<string, string>;
  showReasoning: boolean;
  /** How long the sidecar may take to start, in seconds. */
  startTimeoutSecs: number;
}

export function readSettings(): Settings {
  const settings = vscode.workspace.getConfiguration(SECTION);
  return {
    command: settings.get<string[]>("command", []),
    env: settings.get<Record<string, string>>("env", {}),
    showReasoning: settings.get<boolean>("showReasoning", false),
    startTimeoutSecs: settings.get<number>("startTimeoutSecs", 30),
    model: settings.get<string>("model", "").trim(),
    providers: settings.get("providers", {}),
    mcpServers: settings.get("mcpServers", {}),
    inputs: settings.get("inputs", []),
    permissions: settings.get("permissions", {}),
    options: settings.get("options", {}),
  };
}

/** What `initialize` brings. */
export function optionsOf(settings: Settings): Record<string, unknown> {
  return initializationOptions(settings);
}

/** The settings that take effect only when the sidecar is started again. */
const NEEDS_RESTART = ["command", "env", "providers", "mcpServers", "inputs", "permissions", "options"];

export function needsRestart(change: vscode.ConfigurationChangeEvent): boolean {
  return NEEDS_RESTART.some((name) => change.affectsConfiguration(`${SECTION}.${name}`));
}

export async function setModel(model: string): Promise<void> {
  const settings = vscode.workspace.getConfiguration(SECTION);
  const isWorkspaces = settings.inspect("model")?.workspaceValue !== undefined;
  await settings.update("model", model, isWorkspaces ? vscode.ConfigurationTarget.Workspace : vscode.ConfigurationTarget.Global);
}
