// Where the sidecar is: named by the setting, on PATH, in the Python environment, or in the extension's own.

import { execFile } from "node:child_process";
import { access, constants } from "node:fs/promises";
import * as path from "node:path";
import { promisify } from "node:util";

import * as vscode from "vscode";

const PROGRAM = "agent-sidecar";
const MODULE_CHECK = "import importlib.util, sys; sys.exit(importlib.util.find_spec('sidecar.app') is None)";
/** Own choice: a Python that takes longer to start than this is not waited for. */
const CHECK_LIMIT_MS = 10_000;

/** How the sidecar is started, and where it was found, in words. */
export interface Found {
  command: string;
  args: string[];
  from: string;
}

/** The sidecar, or none where there is none. Throws an error that names what is wrong with the setting. */
export async function locate(setting: string[], ownEnvironment: vscode.Uri): Promise<Found | undefined> {
  return (await bySetting(setting)) ?? (await onPath(PROGRAM)) ?? (await inPythonEnvironment()) ?? (await inOwn(ownEnvironment));
}

/** The first program of these names on PATH. */
export async function onPath(...names: string[]): Promise<Found | undefined> {
  const endings = process.platform === "win32" ? (process.env.PATHEXT ?? ".EXE").split(";") : [""];
  for (const name of names) {
    for (const folder of (process.env.PATH ?? "").split(path.delimiter).filter(Boolean)) {
      for (const ending of endings) {
        const command = path.join(folder, name + ending);
        if (await isProgram(command)) {
          return { command, args: [], from: "PATH" };
        }
      }
    }
  }
  return undefined;
}

/** A program in a virtual environment. */
export function programIn(environment: string, name: string): string {
  return process.platform === "win32" ? path.join(environment, "Scripts", `${name}.exe`) : path.join(environment, "bin", name);
}

/** The interpreter that the person has chosen for this workspace, if one was. */
export async function chosenPython(): Promise<string | undefined> {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  const extension = vscode.extensions.getExtension("ms-python.python");
  if (extension) {
    const api: unknown = await extension.activate();
    const active = (api as { environments?: { getActiveEnvironmentPath(of?: vscode.Uri): { path: string } } }).environments;
    const chosen = active?.getActiveEnvironmentPath(folder).path;
    if (chosen && (await isProgram(chosen))) {
      return chosen;
    }
  }
  const places = [process.env.VIRTUAL_ENV, folder && path.join(folder.fsPath, ".venv"), folder && path.join(folder.fsPath, "venv")];
  for (const place of places) {
    if (place && (await isProgram(programIn(place, "python")))) {
      return programIn(place, "python");
    }
  }
  return undefined;
}

async function bySetting([command, ...args]: string[]): Promise<Found | undefined> {
  if (!command) {
    return undefined;
  }
  const whole = expanded(command);
  if (path.isAbsolute(whole)) {
    if (!(await isProgram(whole))) {
      throw new Error(`agentSidecar.command: there is no program ${JSON.stringify(whole)}; correct the setting or empty it`);
    }
    return { command: whole, args: args.map(expanded), from: "the setting agentSidecar.command" };
  }
  const found = await onPath(whole);
  if (!found) {
    throw new Error(`agentSidecar.command: ${JSON.stringify(whole)} is not on PATH; give its whole path or empty the setting`);
  }
  return { ...found, args: args.map(expanded), from: "the setting agentSidecar.command" };
}

async function inPythonEnvironment(): Promise<Found | undefined> {
  const python = await chosenPython();
  if (!python) {
    return undefined;
  }
  try {
    await promisify(execFile)(python, ["-P", "-c", MODULE_CHECK], { timeout: CHECK_LIMIT_MS });
    // Without -P a folder `sidecar` of the workspace would be run in the place of ours.
    return { command: python, args: ["-P", "-m", "sidecar"], from: `the Python environment of ${python}` };
  } catch {
    return undefined; // It has no sidecar, or is no Python that runs.
  }
}

async function inOwn(environment: vscode.Uri): Promise<Found | undefined> {
  const command = programIn(environment.fsPath, PROGRAM);
  return (await isProgram(command)) ? { command, args: [], from: "the extension's own environment" } : undefined;
}

function expanded(text: string): string {
  const home = process.env.HOME ?? process.env.USERPROFILE ?? "~";
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? "";
  return text
    .replace(/^~(?=[/\\])/, home)
    .replaceAll("${userHome}", home)
    .replaceAll("${workspaceFolder}", folder);
}

async function isProgram(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
