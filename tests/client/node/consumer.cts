// Compiled, never run: the CommonJS build has types of its own.
import client = require("agent-sidecar-client");

async function main(): Promise<string> {
  const sidecar: client.Sidecar = await client.Sidecar.spawn({ options: { model: "ollama/qwen3" } });
  const code: -31004 = client.ERROR_CODES.permissionDenied;
  return `${code} ${await sidecar.submit("hi").text()}`;
}

void main();
