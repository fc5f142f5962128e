// Chooses the model: one of the providers', one of the editor's own, or any by its name.

import * as vscode from "vscode";

import { editorModels } from "./editor-models";
import { messageOf } from "./errors";
import { readSettings, setModel } from "./settings";
import type { Sidecar } from "./sidecar";

interface ModelItem extends vscode.QuickPickItem {
  model: string;
}

const OTHER = "Another model…";

export async function selectModel(sidecar: Sidecar): Promise<void> {
  const current = readSettings().model;
  const items = modelItems(sidecar, current);
  const picked = await vscode.window.showQuickPick(items, { title: "Select a model", placeHolder: current || "As the sidecar's own configuration says", matchOnDescription: true });
  if (!picked) {
    return;
  }
  const model = picked.label === OTHER ? await askName(current) : picked.model;
  if (model !== undefined) {
    await setModel(model);
  }
}

async function modelItems(sidecar: Sidecar, current: string): Promise<ModelItem[]> {
  const [ofProviders, ofEditor] = await Promise.all([
    sidecar.request("models/list", { limit: 1000 }).then(
      ({ models }) => models.map(({ model, provider }): ModelItem => ({ label: model, description: provider, model })),
      (error: unknown): ModelItem[] => [{ label: "The providers' models cannot be listed", description: messageOf(error), model: current }],
    ),
    editorModels(),
  ]);
  const own: ModelItem = { label: "Default", description: "as the sidecar's own configuration and environment say", model: "" };
  return [
    own,
    ...separated("From providers", ofProviders),
    ...separated("From the editor", ofEditor.map(({ model, name, vendor }) => ({ label: name, description: `${model}, ${vendor}`, model }))),
    { label: OTHER, description: "provider/model", model: current },
  ];
}

function separated(label: string, items: ModelItem[]): ModelItem[] {
  return items.length > 0 ? [{ label, kind: vscode.QuickPickItemKind.Separator, model: "" }, ...items] : [];
}

function askName(current: string): Thenable<string | undefined> {
  const isName = (text: string): string | undefined => (text === "" || /^[^/\s]+\/\S+$/.test(text) ? undefined : "provider/model, such as ollama/qwen3");
  return vscode.window.showInputBox({ title: "Select a model", prompt: "provider/model", value: current, validateInput: isName });
}
