// An agent of the AI SDK that a webhook wakes. Its client subscribes, and its handler takes the deliveries, through a
// proxy with the certificate. Each line of the output is a result or an event; a line of the input is a request.
import { experimental_createMCPEventWebhook, createMCPClient } from "@ai-sdk/mcp";
import { createServer } from "node:http";
import { createInterface } from "node:readline";

const say = (kind, value) => console.log(JSON.stringify({ kind, value }));
const all = new Map();
const store = {
  get: async (key) => all.get(key),
  getById: async (id) => [...all.values()].find((s) => s.id === id),
  set: async (s) => void all.set(s.key, s),
  update: async (key, members) => void Object.assign(all.get(key), members),
  delete: async (key) => void all.delete(key),
};
const receive = experimental_createMCPEventWebhook({
  store,
  onEvent: async ({ event }) => say("event", event),
  onError: (error) => say("error", String(error)),
});
const server = createServer(async (request, response) => {
  const body = [];
  for await (const chunk of request) body.push(chunk);
  const { method, headers } = request;
  const answer = await receive(
    new Request(new URL(request.url, process.env.CALLBACK), { method, headers, body: Buffer.concat(body) }),
  );
  response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text());
});
server.listen(0, "127.0.0.1", () => say("listens", server.address().port));

let client, id;
for await (const line of createInterface({ input: process.stdin })) {
  try {
    client ??= await createMCPClient({
      transport: { type: "http", url: process.env.MCP, headers: { authorization: process.env.TOKEN } },
      experimental_events: { store },
    });
    const events = client.experimental_events;
    if (line === "list") say("list", (await events.list()).events);
    if (line === "refresh") say("refreshed", await events.refresh({ id }));
    if (line === "unsubscribe") say("unsubscribed", (await events.unsubscribe({ id })) ?? null);
    if (line === "subscribe") {
      const delivery = { mode: "webhook", url: process.env.CALLBACK };
      const grant = await events.subscribe({
        name: "page.resource.updated",
        arguments: { uri: process.env.URI, minIntervalMs: 1000 },
        delivery,
      });
      id = grant.id;
      say("subscribed", grant);
    }
  } catch (error) {
    say("error", String(error));
  }
}
process.exit();
