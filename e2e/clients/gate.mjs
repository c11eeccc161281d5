/**
 * The official TypeScript clients of both generations, unmodified. Each line on stdin is {method, result}: a server's
 * answer to that request. For each line one is printed: the clients that refuse it, with their errors.
 */
import { createInterface } from "node:readline";
import { Client as Modern } from "@modelcontextprotocol/client";
import { Client as Legacy } from "@modelcontextprotocol/sdk/client/index.js";

const clients = { "sdk 1": Legacy, "sdk 2": Modern };
const requests = {
  "tools/list": (client) => client.listTools(),
  "resources/list": (client) => client.listResources(),
  "resources/templates/list": (client) => client.listResourceTemplates(),
};

/** A transport to a server that has one answer. */
function serverWith(asked, answer) {
  const results = {
    initialize: (params) => ({
      protocolVersion: params.protocolVersion,
      capabilities: { tools: {}, resources: {} },
      serverInfo: { name: "test", version: "1" },
    }),
    [asked]: () => answer,
  };
  return {
    async start() {},
    async close() {},
    async send({ id, method, params }) {
      if (id === undefined) return;
      const result = results[method](params);
      queueMicrotask(() => this.onmessage({ jsonrpc: "2.0", id, result }));
    },
  };
}

for await (const line of createInterface({ input: process.stdin })) {
  const { method, result } = JSON.parse(line);
  const refused = {};
  for (const [name, Client] of Object.entries(clients)) {
    const client = new Client({ name: "test", version: "1" }, {});
    await client.connect(serverWith(method, result));
    await requests[method](client).catch((error) => (refused[name] = String(error).slice(0, 300)));
    await client.close();
  }
  process.stdout.write(`${JSON.stringify(refused)}\n`);
}
