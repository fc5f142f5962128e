// What an error says to people, and to code.

import { RequestFailed } from "agent-sidecar-client";

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The kind of a protocol error, if it is one. */
export function kindOf(error: unknown): string | undefined {
  return error instanceof RequestFailed ? error.kind : undefined;
}
