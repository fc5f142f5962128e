/**
 * Requests in both directions over a wire.
 *
 * Every request of ours ends: with its answer, at its limit, by its signal, or when the sidecar is lost. Every request of
 * the sidecar gets exactly one answer, also when its handler breaks or it is withdrawn.
 */
import { CancellationTokenSource, ErrorCodes, ResponseError } from "vscode-jsonrpc/node";

import { ClientError, failureOf, SidecarExited } from "./errors.js";
import { ERROR_CODES } from "./protocol.js";
import type { Answerer } from "./settings.js";
import type { CancellationTokenLike, Disposable, Wire } from "./wire.js";

/** What ends the wait for an answer before it comes. */
export interface Patience {
  /** Without an answer for so long, the request is withdrawn and fails with what `tooLate` gives. */
  limitMs?: number;
  tooLate?: () => ClientError;
  /** Aborting it withdraws the request, which fails with the signal's reason. */
  signal?: AbortSignal | undefined;
}

/** One conversation; it ends with `lose`. */
export class Conversation {
  readonly #wire: Wire;
  readonly #waiting = new Set<(reason: ClientError) => void>();
  readonly #answering = new Map<AbortController, OpenQuestion>();
  readonly #registered: Disposable[] = [];
  #lost: ClientError | undefined;

  constructor(wire: Wire, answerers: ReadonlyMap<string, Answerer>) {
    this.#wire = wire;
    for (const [method, answerer] of answerers) this.#answer(method, answerer);
  }

  /** Why nothing will come any more; undefined while something may. */
  get lost(): ClientError | undefined {
    return this.#lost;
  }

  /** Asks, and gives the result; a request whose answer nobody waits for any more is withdrawn. */
  async ask(method: string, params: object, patience: Patience): Promise<unknown> {
    const withdrawal = new CancellationTokenSource();
    let isAnswered = false;
    const send = async (): Promise<unknown> => {
      try {
        return await this.#wire.sendRequest(method, params, withdrawal.token);
      } catch (error) {
        throw this.#translated(error);
      } finally {
        isAnswered = true;
      }
    };
    try {
      return await this.wait(send, patience);
    } finally {
      if (!isAnswered && !this.#lost) withdrawal.cancel();
      withdrawal.dispose();
    }
  }

  /** The work's result. Rejects with a ClientError when the sidecar is lost, or with the reason of the signal. */
  wait<T>(work: () => Promise<T>, { limitMs, tooLate, signal }: Patience): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#lost) return reject(this.#lost);
      if (signal?.aborted) return reject(signal.reason);
      const settle = (end: () => void): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", abort);
        this.#waiting.delete(giveUp);
        end();
      };
      const giveUp = (reason: unknown): void => settle(() => reject(reason));
      const abort = (): void => giveUp(signal?.reason);
      const timer = limitMs === undefined ? undefined : setTimeout(() => giveUp(tooLate?.()), timerMs(limitMs));
      signal?.addEventListener("abort", abort);
      this.#waiting.add(giveUp);
      work().then((result) => settle(() => resolve(result)), giveUp);
    });
  }

  /** Tells, without an answer; lost when the sidecar is. */
  notify(method: string, params: object): void {
    if (this.#lost) return;
    Promise.resolve(this.#wire.sendNotification(method, params)).catch(() => undefined);
  }

  /** Hears notifications of one method until it is disposed of. */
  listen(method: string, listener: (params: unknown) => void): void {
    this.#registered.push(this.#wire.onNotification(method, listener));
  }

  /** Nothing will come any more: ends all that waits. Only the first reason counts. */
  lose(reason: ClientError): void {
    if (this.#lost) return;
    this.#lost = reason;
    for (const lose of [...this.#waiting]) lose(reason);
    for (const question of this.#answering.keys()) question.abort(reason);
    for (const each of this.#registered) each.dispose();
  }

  /** An error of the wire as one of ours. */
  #translated(error: unknown): ClientError {
    if (this.#lost) return this.#lost;
    if (error instanceof ClientError) return error;
    const { code, message } = error as { code?: unknown; message?: unknown };
    switch (code) {
      case ErrorCodes.MessageWriteError:
        return new ClientError(`the request could not be sent: ${String(message)}`);
      case ErrorCodes.PendingResponseRejected:
      case ErrorCodes.ConnectionInactive:
        return new SidecarExited(null);
      default:
        // A connection that is closed or stopped throws errors with codes of its own, or with none.
        if (typeof code === "number" && code < 0) return failureOf(error);
        return new ClientError(`no connection: ${String(message)}`);
    }
  }

  /** A question was settled elsewhere: whoever still works on it is told by the signal. */
  drop(requestId: string): void {
    for (const { params, withdraw } of this.#answering.values()) if (params.requestId === requestId) withdraw();
  }

  // Requests of the sidecar ---------------------------------------------------------------------------

  #answer(method: string, answerer: Answerer): void {
    const handle = (params: unknown, token: CancellationTokenLike): Promise<unknown> =>
      this.#answerTo(method, answerer, params, token);
    this.#registered.push(this.#wire.onRequest(method, handle));
  }

  async #answerTo(method: string, answerer: Answerer, given: unknown, token: CancellationTokenLike): Promise<unknown> {
    const params = (given ?? {}) as QuestionParams;
    const question = new AbortController();
    const withdraw = (): void => question.abort(new ResponseError(ERROR_CODES.requestCancelled, `${method} was withdrawn`));
    this.#answering.set(question, { params, withdraw });
    const listening = token.onCancellationRequested(withdraw);
    if (token.isCancellationRequested) withdraw();
    // Should the sidecar not withdraw it in time.
    const { deadlineMs } = params;
    const deadline = typeof deadlineMs === "number" ? setTimeout(withdraw, timerMs(deadlineMs)) : undefined;
    try {
      const { signal } = question;
      return await untilAborted(signal, async () => await answerer(params as never, { signal }));
    } catch (error) {
      if (error instanceof ResponseError) throw error;
      const said = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
      throw new ResponseError(ERROR_CODES.internalError, `the host's callback failed: ${said}`);
    } finally {
      clearTimeout(deadline);
      listening.dispose();
      this.#answering.delete(question);
    }
  }
}

/** What questions of every kind may have. */
interface QuestionParams {
  requestId?: unknown;
  deadlineMs?: unknown;
}

interface OpenQuestion {
  params: QuestionParams;
  withdraw(): void;
}

/** The work's result; once the signal is aborted its reason is thrown instead, and the result is dropped. */
async function untilAborted<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  let abort = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort);
  });
  try {
    return await Promise.race([work(), aborted]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

/** What a timer takes: Node fires at once for more than these 24 days. */
export function timerMs(limitMs: number): number {
  return Math.min(limitMs, 2 ** 31 - 1);
}
