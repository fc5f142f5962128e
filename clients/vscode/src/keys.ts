// Keys of providers: kept in the editor's secret storage and given to the sidecar as variables of its environment.

import * as vscode from "vscode";

import { keyVariable, providersWithKeys } from "./options";
import { readSettings, SECTION } from "./settings";

const INDEX = "keys";
const PREFIX = "key:";
const KNOWN = ["openai", "anthropic", "openrouter", "deepseek"];

export class Keys {
  constructor(
    private readonly secrets: vscode.SecretStorage,
    private readonly memento: vscode.Memento,
  ) {}

  /** The variables that hold a key, with the keys. */
  async variables(): Promise<Record<string, string>> {
    const found = await Promise.all(this.names.map(async (name) => [name, await this.secrets.get(PREFIX + name)] as const));
    return Object.fromEntries(found.filter((entry): entry is [string, string] => entry[1] !== undefined));
  }

  /** Asks which key and what it is; an empty one takes it away. True when one is other than before. */
  async ask(): Promise<boolean> {
    const { providers } = readSettings();
    const names = [...new Set([...Object.keys(providers), ...KNOWN])];
    const items = names.map((name) => ({ label: name, variable: keyVariable(name, providers) }));
    const picked = await vscode.window.showQuickPick(
      [
        ...items.map((item) => ({ ...item, description: `${item.variable}${this.names.includes(item.variable) ? ", is set" : ""}` })),
        { label: "Another variable…", description: "for example one that a server's entry names as ${env:NAME}", variable: "" },
      ],
      { title: "Set a key", placeHolder: "Whose key? It is kept in the editor's secret storage, never in settings" },
    );
    const variable = picked && (picked.variable || (await this.askName()));
    if (!variable) {
      return false;
    }
    const key = await vscode.window.showInputBox({ title: variable, prompt: "The key. Leave it empty to remove it", password: true, ignoreFocusOut: true });
    if (key === undefined) {
      return false;
    }
    await this.set(variable, key.trim());
    return true;
  }

  /** Takes keys out of the settings, where a person has put them. True when one was moved. */
  async moveOutOfSettings(): Promise<boolean> {
    const { providers } = readSettings();
    const names = providersWithKeys(providers);
    if (names.length === 0) {
      return false;
    }
    const move = "Move to Secret Storage";
    const text = `The settings hold a key of ${names.join(", ")}, where others may read it. It is not used.`;
    if ((await vscode.window.showWarningMessage(text, move)) !== move) {
      return false;
    }
    for (const name of names) {
      await this.set(keyVariable(name, providers), String(providers[name]?.apiKey));
    }
    await removeKeys();
    return true;
  }

  private get names(): string[] {
    return this.memento.get<string[]>(INDEX, []);
  }

  private async askName(): Promise<string | undefined> {
    const isName = (text: string): string | undefined => (/^[A-Za-z_]\w*$/.test(text) ? undefined : "The name of a variable, such as DOCS_TOKEN");
    return vscode.window.showInputBox({ title: "Set a key", prompt: "The variable that holds it", validateInput: isName });
  }

  private async set(variable: string, key: string): Promise<void> {
    const others = this.names.filter((name) => name !== variable);
    if (key === "") {
      await this.secrets.delete(PREFIX + variable);
    } else {
      await this.secrets.store(PREFIX + variable, key);
    }
    await this.memento.update(INDEX, key === "" ? others : [...others, variable].sort());
  }
}

async function removeKeys(): Promise<void> {
  const settings = vscode.workspace.getConfiguration(SECTION);
  const found = settings.inspect<Record<string, Record<string, unknown>>>("providers");
  const places = [
    [found?.globalValue, vscode.ConfigurationTarget.Global],
    [found?.workspaceValue, vscode.ConfigurationTarget.Workspace],
  ] as const;
  for (const [providers, target] of places) {
    if (providers && providersWithKeys(providers).length > 0) {
      const bare = Object.entries(providers).map(([name, { apiKey: _, ...rest }]) => [name, rest]);
      await settings.update("providers", Object.fromEntries(bare), target);
    }
  }
}
