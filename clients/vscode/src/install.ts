// Installs the sidecar on request, into a virtual environment of the extension's own.

import { execFile, spawn } from "node:child_process";
import { mkdir, rm } from "node:fs/promises";
import { promisify } from "node:util";

import * as vscode from "vscode";

import { chosenPython, onPath, programIn } from "./locate";

/** As `requires-python` of the sidecar. */
const OLDEST = [3, 11] as const;
const PACKAGE = "agent-sidecar";
const CHECK_LIMIT_MS = 10_000;
/** Own choice: slow networks take their time. */
const INSTALL_LIMIT_MS = 10 * 60_000;
const VERSION_CODE = "import sys; print('%d.%d' % sys.version_info[:2])";

/** Makes the environment anew and installs into it. Throws an error that says what to do. */
export async function install(environment: vscode.Uri, log: vscode.LogOutputChannel): Promise<void> {
  const source = vscode.workspace.getConfiguration("agentSidecar").get<string>("installFrom", "").trim() || PACKAGE;
  await vscode.window.withProgress(
    { location: vscode.ProgressLocation.Notification, title: "Installing Agent Sidecar", cancellable: true },
    async (progress, token) => {
      progress.report({ message: "looking for Python" });
      const python = await suitablePython();
      log.info(`installing ${source} with ${python.command} ${python.version} into ${environment.fsPath}`);
      await rm(environment.fsPath, { recursive: true, force: true });
      await mkdir(environment.fsPath, { recursive: true });
      progress.report({ message: "making a virtual environment" });
      await run(python.command, ["-m", "venv", environment.fsPath], log, token).catch((error: unknown) => {
        throw new Error(`a virtual environment cannot be made with ${python.command}: ${String(error)}; on Debian and Ubuntu, install python3-venv`, {
          cause: error,
        });
      });
      progress.report({ message: "fetching packages" });
      const pip = ["-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--upgrade", source];
      await run(programIn(environment.fsPath, "python"), pip, log, token);
    },
  );
}

async function suitablePython(): Promise<{ command: string; version: string }> {
  const chosen = await chosenPython();
  const onPathNow = await Promise.all(["python3", "python", "python3.14", "python3.13", "python3.12", "python3.11"].map((name) => onPath(name)));
  const candidates = [chosen, ...onPathNow.map((found) => found?.command)].filter((command) => command !== undefined);
  const seen: string[] = [];
  for (const command of new Set(candidates)) {
    const version = await versionOf(command);
    if (version && isNewEnough(version)) {
      return { command, version };
    }
    seen.push(version ? `${command} is ${version}` : `${command} does not run`);
  }
  const wanted = `Python ${OLDEST.join(".")} or newer`;
  const found = seen.length > 0 ? `, but only: ${seen.join("; ")}` : "";
  throw new Error(`${wanted} was not found on PATH${found}; install it from python.org or your system's packages, then try again`);
}

async function versionOf(command: string): Promise<string | undefined> {
  try {
    const { stdout } = await promisify(execFile)(command, ["-c", VERSION_CODE], { timeout: CHECK_LIMIT_MS });
    return stdout.trim();
  } catch {
    return undefined;
  }
}

function isNewEnough(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]);
}

async function run(command: string, args: string[], log: vscode.LogOutputChannel, token: vscode.CancellationToken): Promise<void> {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], timeout: INSTALL_LIMIT_MS, windowsHide: true });
  const cancelled = token.onCancellationRequested(() => child.kill());
  let last = "";
  const take = (data: Buffer): void => {
    for (const line of data.toString().split("\n").filter((each) => each.trim() !== "")) {
      log.info(line);
      last = line.trim();
    }
  };
  child.stdout.on("data", take);
  child.stderr.on("data", take);
  try {
    await new Promise<void>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (code) => {
        if (code === 0) {
          resolve();
        } else {
          reject(new Error(token.isCancellationRequested ? "it was cancelled" : last || `status ${code}`));
        }
      });
    });
  } finally {
    cancelled.dispose();
  }
}
