/**
 * Everything that can go wrong between a host and its sidecar.
 *
 *     ClientError                 what this library throws on purpose
 *     ├── CannotStart             the command could not be run at all
 *     ├── SidecarExited           the process is gone; says its status and the last it wrote to stderr
 *     ├── BrokenStream            what comes over the wire is not the protocol
 *     ├── NoAnswer                a request was not answered within its limit
 *     └── RequestFailed           the sidecar answered with an error
 *         └── RunCancelled        the run was cancelled, by whomever
 */
import { ERROR_CODES, type ErrorKindName, type JsonObject } from "./protocol.js";

/** A failure with a sentence for people, on one line. */
export class ClientError extends Error {
  override readonly name: string = "ClientError";
}

/** The command does not exist or may not be run. */
export class CannotStart extends ClientError {
  override readonly name: string = "CannotStart";
}

/** The process ended, or closed its stdout, while somebody counted on it. */
export class SidecarExited extends ClientError {
  override readonly name: string = "SidecarExited";

  constructor(
    /** Exit status; null where a signal ended it, or where it is not known. */
    readonly status: number | null,
    /** The signal that ended it. */
    readonly signal: string | null = null,
    /** The last lines that it wrote to stderr, which often say why. */
    readonly stderrTail: string = "",
  ) {
    const lastLine = stderrTail.trim().split("\n").at(-1);
    super(`the sidecar ${ending(status, signal)}${lastLine ? `: ${lastLine}` : ""}`);
  }
}

function ending(status: number | null, signal: string | null): string {
  if (signal !== null) return `was ended by ${signal}`;
  return status === null ? "closed the connection" : `exited with status ${status}`;
}

/** The process is no sidecar, or something in it prints to stdout. */
export class BrokenStream extends ClientError {
  override readonly name: string = "BrokenStream";
}

/** The sidecar lives and is silent. */
export class NoAnswer extends ClientError {
  override readonly name: string = "NoAnswer";

  constructor(
    readonly method: string,
    readonly limitMs: number,
  ) {
    super(`the sidecar did not answer ${method} within ${limitMs / 1000} s`);
  }
}

/** A JSON-RPC error. Match on `kind`, which is stable, rather than on the message. */
export class RequestFailed extends ClientError {
  override readonly name: string = "RequestFailed";

  constructor(
    readonly code: number,
    message: string,
    readonly data: JsonObject = {},
  ) {
    super(message);
  }

  /** The error in a word, such as `permissionDenied`; undefined where the sidecar gave none. */
  get kind(): ErrorKindName | undefined {
    const kind = this.data["kind"];
    return typeof kind === "string" ? (kind as ErrorKindName) : undefined;
  }
}

/** The answer of a run that was cancelled. */
export class RunCancelled extends RequestFailed {
  override readonly name: string = "RunCancelled";

  constructor(message = "the run was cancelled", data: JsonObject = { kind: "requestCancelled" }) {
    super(ERROR_CODES.requestCancelled, message, data);
  }
}

/** The `error` of a JSON-RPC answer as an exception, whatever it holds. */
export function failureOf(error: unknown): RequestFailed {
  const { code, message, data } = (error ?? {}) as { code?: unknown; message?: unknown; data?: unknown };
  const said = typeof message === "string" ? message : `an error without a message: ${String(error)}`;
  const details = typeof data === "object" && data !== null ? (data as JsonObject) : {};
  if (code === ERROR_CODES.requestCancelled) return new RunCancelled(said, details);
  return new RequestFailed(typeof code === "number" ? code : 0, said, details);
}
