// What a call would change, in the diff editor: the file as it is, beside the file as it would be.

import type { RequestApprovalParams } from "agent-sidecar-client/protocol";
import * as vscode from "vscode";

import { applied, fileOf } from "./patch";

const SCHEME = "agent-sidecar-proposal";

export class ProposedChanges implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly texts = new Map<string, string>();
  private readonly registration = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString()) ?? "";
  }

  /** Shows the change that a question is about. Without one that can be applied, the diff itself. */
  async show(params: RequestApprovalParams): Promise<void> {
    if (params.diff == null) {
      return;
    }
    const path = fileOf(params.diff) ?? params.toolName;
    const file = inWorkspace(path);
    const isThere = file !== undefined && (await exists(file));
    try {
      const text = isThere ? (await vscode.workspace.openTextDocument(file)).getText() : "";
      const proposed = this.keep(params.requestId, path, applied(text, params.diff));
      const original = isThere ? file : this.keep(params.requestId, `nothing/${path}`, "");
      await vscode.commands.executeCommand("vscode.diff", original, proposed, `${path} (proposed)`, { preview: true });
    } catch {
      // The file is other than when the change was thought of, or cannot be shown as text.
      const shown = this.keep(params.requestId, `${path}.diff`, params.diff);
      await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(shown), { preview: true });
    }
  }

  /** Closes what is shown of a question that is over. */
  async close(requestId: string): Promise<void> {
    const isOurs = (uri: vscode.Uri): boolean => uri.scheme === SCHEME && uri.authority === requestId;
    const tabs = vscode.window.tabGroups.all
      .flatMap((group) => group.tabs)
      .filter(({ input }) => {
        const uri = input instanceof vscode.TabInputTextDiff ? input.modified : input instanceof vscode.TabInputText ? input.uri : undefined;
        return uri !== undefined && isOurs(uri);
      });
    await vscode.window.tabGroups.close(tabs, true);
    for (const key of this.texts.keys()) {
      if (isOurs(vscode.Uri.parse(key))) {
        this.texts.delete(key);
      }
    }
  }

  dispose(): void {
    this.registration.dispose();
    this.texts.clear();
  }

  private keep(requestId: string, name: string, text: string): vscode.Uri {
    const uri = vscode.Uri.from({ scheme: SCHEME, authority: requestId, path: `/${name.replace(/^\/+/, "")}` });
    this.texts.set(uri.toString(), text);
    return uri;
  }
}

/** A path as tools spell it, absolute or from the first workspace folder; none where it leads out of the workspace. */
export function inWorkspace(path: string): vscode.Uri | undefined {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  const isAbsolute = /^([/\\]|[A-Za-z]:)/.test(path);
  const uri = isAbsolute ? vscode.Uri.file(path) : folder && vscode.Uri.joinPath(folder, path);
  return uri && vscode.workspace.getWorkspaceFolder(uri) ? uri : undefined;
}

async function exists(file: vscode.Uri): Promise<boolean> {
  return vscode.workspace.fs.stat(file).then(
    () => true,
    () => false,
  );
}
