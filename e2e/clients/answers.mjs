/**
 * The official TypeScript clients of both generations, unmodified. Each line on stdin is {method, result}: a server's
 * answer to that request. For each line one is printed: the clients that refuse it, with their errors.
 */
import { createInterface } from "node:readline";
import { Client as Second } from "@modelcontextprotocol/client";
import { Client as First } from "@modelcontextprotocol/sdk/client/index.js";

const clients = { "sdk 1": First, "sdk 2": Second };
const requests = {
  "tools/call": (client) => client.callTool({ name: "t", arguments: {} }),
  "resources/read": (client) => client.readResource({ uri: "https://app.example/a" }),
};

/** A transport to a server with one answer. `given` is called after the client has had a turn to take it. */
const serverWith = (asked, answer, given) => ({
  async start() {},
  async close() {},
  async send({ id, method, params }) {
    if (id === undefined) return;
    const initialized = {
      protocolVersion: params?.protocolVersion,
      capabilities: { tools: {}, resources: {} },
      serverInfo: { name: "test", version: "1" },
    };
    queueMicrotask(() => {
      this.onmessage({ jsonrpc: "2.0", id, result: method === asked ? answer : initialized });
      if (method === asked) setImmediate(() => setImmediate(given));
    });
  },
});

for await (const line of createInterface({ input: process.stdin })) {
  const { method, result } = JSON.parse(line);
  const refused = {};
  for (const [name, Client] of Object.entries(clients)) {
    const client = new Client({ name: "test", version: "1" }, {});
    let drop;
    // A client that drops an answer goes on waiting, until its timeout.
    const dropped = new Promise((_, reject) => (drop = () => reject(new Error("the answer is dropped"))));
    await client.connect(serverWith(method, result, drop));
    const request = requests[method](client);
    request.catch(() => {}); // it may end with the client
    try {
      await Promise.race([request, dropped]);
      if (Object.prototype.polluted !== undefined) throw new Error("a prototype is changed");
    } catch (error) {
      refused[name] = String(error).slice(0, 300);
    }
    dropped.catch(() => {});
    await client.close();
  }
  process.stdout.write(`${JSON.stringify(refused)}\n`);
}
// A dropped answer leaves the client's timer.
process.stdout.end(() => process.exit());
