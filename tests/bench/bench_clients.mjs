// The Node half of bench_clients.py: what an event costs through the library and by hand, in turns, as CPU time.
//
//     node bench_clients.mjs LIBRARY ROUNDS EVENTS COMMAND...
//
// Prints a line of JSON: {"floor": [microseconds an event, of each round], "client": [...]}.
import { spawn } from "node:child_process";
import { pathToFileURL } from "node:url";

const [library, rounds, events, ...command] = process.argv.slice(2);
const { Sidecar } = await import(pathToFileURL(library));

const sidecar = await Sidecar.spawn({ command });
const byHand = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "inherit"] });

function send(message) {
  const body = JSON.stringify({ jsonrpc: "2.0", ...message });
  byHand.stdin.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}

/** Reads frames and parses them until the answer comes; how many were events. */
function floor() {
  return new Promise((resolve) => {
    let rest = Buffer.alloc(0);
    let count = 0;
    const take = (data) => {
      const buffer = rest.length > 0 ? Buffer.concat([rest, data]) : data;
      let at = 0;
      for (;;) {
        const end = buffer.indexOf("\r\n\r\n", at, "latin1");
        if (end < 0) break;
        const bodyEnd = end + 4 + Number(buffer.toString("latin1", at + 16, end));
        if (bodyEnd > buffer.length) break;
        const message = JSON.parse(buffer.toString("utf8", end + 4, bodyEnd));
        at = bodyEnd;
        if (message.method === "agent/event") count++;
        else if (message.id === 1) {
          byHand.stdout.off("data", take);
          resolve(count);
        }
      }
      rest = buffer.subarray(at);
    };
    byHand.stdout.on("data", take);
    send({ id: 1, method: "agent/submit", params: { prompt: "go", runId: "run_5f2c9a1b7d3e4c8fa0b6d2e9c1a7f384" } });
  });
}

async function client() {
  let count = 0;
  for await (const _ of sidecar.submit("go")) count++;
  return count;
}

async function microsecondsAnEvent(read) {
  const before = process.cpuUsage();
  const count = await read();
  const { user, system } = process.cpuUsage(before);
  if (count !== Number(events)) throw new Error(`${count} events came`);
  return (user + system) / count;
}

const took = { floor: [], client: [] };
for (let round = 0; round < Number(rounds); round++) {
  took.floor.push(await microsecondsAnEvent(floor));
  took.client.push(await microsecondsAnEvent(client));
}
byHand.stdin.end();
await sidecar.close();
console.log(JSON.stringify(took));
