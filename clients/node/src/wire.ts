/** What this library needs of a JSON-RPC connection. */

/** As in vscode-jsonrpc. */
export interface Disposable {
  dispose(): void;
}

/** As in vscode-jsonrpc. */
export interface CancellationTokenLike {
  readonly isCancellationRequested: boolean;
  readonly onCancellationRequested: (listener: (event: unknown) => unknown) => Disposable;
}

/**
 * A JSON-RPC connection to a sidecar. vscode-jsonrpc's `MessageConnection` is one, and so is vscode-languageclient's
 * `LanguageClient`. The handlers' `any` is theirs.
 */
export interface Wire {
  sendRequest(method: string, params: object, token: CancellationTokenLike): PromiseLike<unknown>;
  sendNotification(method: string, params: object): PromiseLike<void>;
  onRequest(method: string, handler: (params: any, token: CancellationTokenLike) => unknown): Disposable;
  onNotification(method: string, handler: (params: any) => void): Disposable;
}
