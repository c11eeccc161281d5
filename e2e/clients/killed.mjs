/**
 * One of the two official TypeScript clients, unmodified, on standard input and output of a command. It subscribes to a
 * resource as soon as that is listed. It prints a line for each event: "told" for an update, "closed" and "error ..."
 * for events of its connection. For each line of its own standard input it reads the resource and prints "read ...".
 */
import { createInterface } from "node:readline";
import { Client as ModernClient } from "@modelcontextprotocol/client";
import { StdioClientTransport as ModernTransport } from "@modelcontextprotocol/client/stdio";
import { Client as StableClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as StableTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ResourceUpdatedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";

const [which, uri, command, ...args] = process.argv.slice(2);
const modern = which === "modern";
const me = { name: "test", version: "1" };
const client = modern
  ? new ModernClient(me, { versionNegotiation: { mode: { pin: "2026-07-28" } } })
  : new StableClient(me);
client.onerror = (error) => console.log(`error ${error}`);
client.onclose = () => console.log("closed");
client.setNotificationHandler(modern ? "notifications/resources/updated" : ResourceUpdatedNotificationSchema, () =>
  console.log("told"),
);
await client.connect(new (modern ? ModernTransport : StableTransport)({ command, args, env: process.env }));
while (!(await client.listResources()).resources.some((resource) => resource.uri === uri));
if (modern) await client.listen({ resourceSubscriptions: [uri] });
else await client.subscribeResource({ uri });
console.log("subscribed");
for await (const _ of createInterface(process.stdin)) {
  console.log(`read ${(await client.readResource({ uri })).contents[0].text}`);
}
client.onclose = undefined;
await client.close();
