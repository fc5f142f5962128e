/**
 * A host for Agent Sidecar in a few lines.
 *
 *     const sidecar = await Sidecar.spawn();
 *     const run = sidecar.submit("Which files are here?");
 *     for await (const event of run) console.log(event);
 *     console.log(await run.text());
 *     await sidecar.close();
 */
export {
  BrokenStream,
  CannotStart,
  ClientError,
  NoAnswer,
  RequestFailed,
  RunCancelled,
  SidecarExited,
} from "./errors.js";
export { describedBy, type HostCapabilities, hostCapabilities, type ServerDescription } from "./handshake.js";
export { type ProcessSettings, SidecarProcess } from "./process.js";
export * from "./protocol.js";
export { Run, type RunPosition, type SubmitRequest } from "./run.js";
export type {
  Answerer,
  Awaitable,
  ConnectSettings,
  HostSettings,
  Limits,
  ModelContext,
  ModelReply,
  QuestionContext,
  RunnableTool,
  SpawnSettings,
  ToolContext,
} from "./settings.js";
export { type RequestOptions, Sidecar } from "./sidecar.js";
export { StreamTransports } from "./transports.js";
export type { CancellationTokenLike, Disposable, Wire } from "./wire.js";
