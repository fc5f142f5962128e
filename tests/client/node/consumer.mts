// Compiled, never run: what a host in TypeScript gets checked, from the ES module.
import { createMessageConnection, StreamMessageReader, StreamMessageWriter } from "vscode-jsonrpc/node";

import { type AgentEvent, type RunnableTool, Sidecar, type Wire } from "agent-sidecar-client";

await using sidecar = await Sidecar.spawn({
  onApproval: ({ options }, { signal }) => (signal.aborted ? "deny" : (options[0]?.decision ?? "deny")),
});

for await (const event of sidecar.submit("hi")) told(event);

function told(event: AgentEvent): string | number {
  switch (event.type) {
    case "assistantTextDelta":
      return event.text;
    case "toolExecutionCompleted":
      return event.durationMs;
    default:
      // @ts-expect-error  only some types of event have a text
      return event.text;
  }
}

const { tools } = await sidecar.request("tools/list");
const name: string | undefined = tools[0]?.name;
await sidecar.request("session/events", { sessionId: "s", afterSeq: 3 }, { limitMs: 100 });
// @ts-expect-error  a session has to be named
await sidecar.request("session/get");
// @ts-expect-error  there is no such method
await sidecar.request("session/gets", { sessionId: "s" });
// @ts-expect-error  a session's id is a string
sidecar.submit({ prompt: "hi", sessionId: 5 });
sidecar.onNotification("mcp/statusChanged", ({ status }) => status === "ready");

const tool: RunnableTool = { name: name ?? "x", description: "", inputSchema: {}, run: (input, { callId }) => [input, callId] };
const connection = createMessageConnection(new StreamMessageReader(process.stdin), new StreamMessageWriter(process.stdout));
await Sidecar.attach(connection satisfies Wire, { tools: [tool] });
