/** What host and sidecar tell each other of themselves in LSP's `initialize`. */
import { basename } from "node:path";
import { pathToFileURL } from "node:url";

import { BrokenStream } from "./errors.js";
import { PROTOCOL_VERSION } from "./protocol.js";
import type { ConnectSettings, HostSettings } from "./settings.js";

/** What a host can do: `capabilities.experimental.agentSidecar` of `initialize`. */
export interface HostCapabilities {
  protocolVersion: string;
  approvals: boolean;
  input: boolean;
  hostTools: boolean;
  hostModel: boolean;
  optOutEvents: string[];
}

/** What a sidecar says of itself: `capabilities.experimental.agentSidecar` of the answer to `initialize`. */
export interface ServerDescription {
  protocolVersion: string;
  methods: string[];
  events: string[];
  models: string[];
}

/** What a host with these settings can do; for those who send `initialize` themselves. */
export function hostCapabilities(settings: HostSettings): HostCapabilities {
  const answers = (method: string): boolean => settings.answerers?.[method] !== undefined;
  return {
    protocolVersion: PROTOCOL_VERSION,
    approvals: settings.onApproval !== undefined || answers("agent/requestApproval"),
    input: settings.onInput !== undefined || answers("agent/requestInput"),
    hostTools: true,
    hostModel: settings.onModel !== undefined || answers("model/complete"),
    optOutEvents: [...(settings.optOutEvents ?? [])],
  };
}

/** The params of `initialize`: who we are, where we work, and what we can do. */
export function initializeParams(settings: ConnectSettings): object {
  const folder = settings.cwd ?? process.cwd();
  const uri = pathToFileURL(folder).href;
  return {
    processId: process.pid,
    clientInfo: settings.clientInfo ?? { name: "agent-sidecar-client" },
    rootUri: uri,
    workspaceFolders: [{ uri, name: basename(folder) }],
    capabilities: { experimental: { agentSidecar: hostCapabilities(settings) } },
    initializationOptions: settings.options ?? {},
  };
}

/** What the answer to `initialize` says of the sidecar. Throws BrokenStream when it is no sidecar's. */
export function describedBy(result: unknown): ServerDescription {
  const { capabilities } = (result ?? {}) as { capabilities?: { experimental?: { agentSidecar?: Partial<ServerDescription> } } };
  const described = capabilities?.experimental?.agentSidecar;
  if (typeof described?.protocolVersion !== "string") {
    throw new BrokenStream("not a sidecar: it answers initialize without experimental.agentSidecar");
  }
  const { protocolVersion } = described;
  if (major(protocolVersion) !== major(PROTOCOL_VERSION)) {
    throw new BrokenStream(`the sidecar speaks protocol ${protocolVersion}; this library speaks ${PROTOCOL_VERSION}`);
  }
  return { methods: [], events: [], models: [], ...described, protocolVersion };
}

function major(version: string): string | undefined {
  return version.split(".")[0];
}
