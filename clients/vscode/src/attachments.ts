// What of the editor goes along with a prompt: the selection, or a file as it stands.

import * as vscode from "vscode";

import { fenced } from "./fence";

export interface Attachment {
  /** What the person sees of it. */
  name: string;
  /** What the model is told. */
  text: string;
}

/** The selection of the editor that was used last, or its whole file where nothing is selected. */
export function fromEditor(editor: vscode.TextEditor): Attachment {
  const { document, selection } = editor;
  const shown = vscode.workspace.asRelativePath(document.uri, false);
  const isWhole = selection.isEmpty;
  const name = isWhole ? shown : `${shown}, ${linesOf(selection)}`;
  const body = document.getText(isWhole ? undefined : selection);
  return { name, text: `${name}, as it stands in the editor:\n${fenced(body, document.languageId)}` };
}

function linesOf({ start, end }: vscode.Selection): string {
  // A selection that ends at the start of a line does not hold that line.
  const last = end.character === 0 && end.line > start.line ? end.line : end.line + 1;
  return start.line + 1 === last ? `line ${last}` : `lines ${start.line + 1} to ${last}`;
}
