/**
 * The sidecar's process: started in a group of its own, listened to, and ended for certain.
 *
 * Its stderr is always drained and kept as a tail. Stopping it climbs a ladder: stdin is closed, which the protocol takes
 * as the order to save and go; then SIGTERM; then the whole process group is killed.
 */
import { type ChildProcessByStdio, spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import type { Readable, Writable } from "node:stream";
import { StringDecoder } from "node:string_decoder";

import { CannotStart, SidecarExited } from "./errors.js";

/** How long a process that has exited, or closed its stdout, is waited for. Own choice: a grandchild may hold pipes open. */
const DRAIN_MS = 1000;

/** Enough for a traceback. Own choice. */
const STDERR_TAIL_LINES = 40;

/** Where a line that never ends is cut, so that it cannot grow without limit. */
const MAX_STDERR_LINE = 8 * 1024;

/** For Windows' own tool to end a process tree. Own choice. */
const TASKKILL_MS = 5000;

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

export interface ProcessSettings {
  command: readonly [program: string, ...args: string[]];
  cwd?: string | undefined;
  env?: NodeJS.ProcessEnv | undefined;
  /** Hears each line that the process writes to stderr. */
  onStderr?: ((line: string) => void) | undefined;
}

/** One process, from its start to its end; `start` makes one. */
export class SidecarProcess {
  /** When nothing more can come, and why. */
  readonly ended: Promise<SidecarExited>;
  readonly #child: Child;
  readonly #exited: Promise<void>;
  readonly #tail: string[] = [];

  /** Runs the command. Rejects with CannotStart. */
  static async start(settings: ProcessSettings): Promise<SidecarProcess> {
    const [program, ...args] = settings.command;
    const child = spawn(program, args, {
      cwd: settings.cwd,
      env: settings.env,
      stdio: ["pipe", "pipe", "pipe"],
      // A Ctrl-C at the terminal is for the host to deal with, and the whole group can be ended at once. On Windows this
      // would open a window.
      detached: process.platform !== "win32",
      windowsHide: true,
    });
    return new Promise((resolve, reject) => {
      const fail = (error: NodeJS.ErrnoException): void => reject(cannotStart(program, settings.cwd, error));
      child.once("error", fail);
      child.once("spawn", () => {
        child.off("error", fail);
        resolve(new SidecarProcess(child, settings.onStderr));
      });
    });
  }

  /** Use `start`. */
  private constructor(child: Child, onStderr: ((line: string) => void) | undefined) {
    this.#child = child;
    child.on("error", () => undefined); // A signal that could not be sent; the ladder goes on.
    child.stdin.on("error", () => undefined); // The end of the process says why.
    this.#exited = new Promise((resolve) => child.once("exit", () => resolve()));
    this.ended = this.#whenEnded();
    takeLines(child.stderr, (line) => {
      this.#tail.push(line);
      if (this.#tail.length > STDERR_TAIL_LINES) this.#tail.shift();
      onStderr?.(line);
    });
  }

  get stdin(): Writable {
    return this.#child.stdin;
  }

  get stdout(): Readable {
    return this.#child.stdout;
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** The last lines that it wrote to stderr. */
  get stderrTail(): string {
    return this.#tail.join("\n");
  }

  /** Ends the process, which gets `graceMs` at each rung of the ladder. */
  async stop(graceMs: number): Promise<void> {
    const [close, kill] = [() => this.#child.stdin.end(), () => this.killTree()];
    // Windows knows no polite signal: it would end the process and leave behind what that has started.
    const ladder = process.platform === "win32" ? [close, kill] : [close, () => this.#child.kill("SIGTERM"), kill];
    for (const climb of ladder) {
      climb();
      if (await isDoneWithin(this.#exited, graceMs)) break;
    }
    // A grandchild may hold the pipes open; it must not hold this program, too.
    for (const pipe of [this.#child.stdin, this.#child.stdout, this.#child.stderr]) pipe.destroy();
  }

  /** Ends the process at once, and with it everything in its group. */
  killTree(): void {
    // Only while the process has not been waited for: afterwards its number may be somebody else's.
    const { pid, exitCode, signalCode } = this.#child;
    if (pid === undefined || exitCode !== null || signalCode !== null) return;
    if (process.platform === "win32") {
      spawnSync("taskkill", ["/T", "/F", "/PID", String(pid)], { timeout: TASKKILL_MS, windowsHide: true });
      return;
    }
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      this.#child.kill("SIGKILL"); // The group is gone already.
    }
  }

  #whenEnded(): Promise<SidecarExited> {
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        resolve(new SidecarExited(this.#child.exitCode, this.#child.signalCode, this.stderrTail));
      };
      let timer: NodeJS.Timeout | undefined;
      const endSoon = (): void => {
        timer ??= setTimeout(end, DRAIN_MS);
      };
      this.#child.once("close", end);
      this.#child.once("exit", endSoon);
      this.#child.stdout.once("close", endSoon);
    });
  }
}

function cannotStart(program: string, cwd: string | undefined, error: NodeJS.ErrnoException): CannotStart {
  const what = `cannot start ${JSON.stringify(program)}`;
  if (error.code !== "ENOENT") return new CannotStart(`${what}: ${error.message}`);
  if (cwd !== undefined && !existsSync(cwd)) return new CannotStart(`${what}: there is no folder ${JSON.stringify(cwd)}`);
  return new CannotStart(`${what}: there is no such program; install it, or say where it is with \`command\``);
}

/** Whether the promise settles in time; leaves no timer behind. */
async function isDoneWithin(work: Promise<unknown>, limitMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, limitMs, false);
  });
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Calls `take` with each line; the last one counts without its end, too. */
function takeLines(stream: Readable, take: (line: string) => void): void {
  const decoder = new StringDecoder("utf8");
  let rest = "";
  stream.on("data", (data: Buffer) => {
    const lines = (rest + decoder.write(data)).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > MAX_STDERR_LINE) {
      lines.push(rest);
      rest = "";
    }
    for (const line of lines) take(line.replace(/\r$/, ""));
  });
  stream.on("error", () => undefined);
  stream.on("end", () => {
    if (rest !== "") take(rest);
  });
}
