// A real server for the tests of Views: the official SDK's, over streamable HTTP, in both eras on one port. It prints
// its URL, and ends with its input.
//
//   /mcp      MCP: 2026-07-28 through createMcpHandler, earlier versions through a sessionful transport
//   /change   ?uri=U changes the content of U, and notifies subscribers
//   /counts   the present subscribers
import { createServer } from "node:http";
import { randomUUID } from "node:crypto";
import {
  createMcpHandler,
  isLegacyRequest,
  McpServer,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";

const uris = ["data://metrics/live", "data://table", "data://log"];
const versions = new Map(uris.map((uri) => [uri, 0]));
/** By session: its server, and the URIs that it watches. */
const sessions = new Map();

function make() {
  const server = new McpServer(
    { name: "ts", version: "1" },
    { capabilities: { resources: { subscribe: true, listChanged: true } } },
  );
  for (const uri of uris) {
    server.registerResource(uri, uri, { mimeType: "application/json" }, () => ({
      contents: [{ uri, mimeType: "application/json", text: JSON.stringify({ version: versions.get(uri) }) }],
    }));
  }
  return server;
}

const modern = createMcpHandler(make, { legacy: "reject" });

async function legacy(request) {
  const id = request.headers.get("mcp-session-id");
  let session = sessions.get(id);
  if (!session) {
    if (id) return new Response("no such session", { status: 404 });
    const watched = new Set();
    const server = make();
    server.server.setRequestHandler("resources/subscribe", ({ params }) => {
      watched.add(params.uri);
      return {};
    });
    server.server.setRequestHandler("resources/unsubscribe", ({ params }) => {
      watched.delete(params.uri);
      return {};
    });
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (name) => void sessions.set(name, session),
      onsessionclosed: (name) => void sessions.delete(name),
    });
    session = { watched, server, transport };
    await server.connect(transport);
  }
  return session.transport.handleRequest(request);
}

function change(uri) {
  versions.set(uri, versions.get(uri) + 1);
  modern.notify.resourceUpdated(uri);
  for (const { watched, server } of sessions.values())
    if (watched.has(uri)) void server.server.sendResourceUpdated({ uri });
}

const cors = {
  "access-control-allow-origin": "*",
  "access-control-allow-methods": "*",
  "access-control-allow-headers": "*, authorization",
  "access-control-expose-headers": "*",
};

const http = createServer(async (incoming, outgoing) => {
  const url = new URL(incoming.url, `http://${incoming.headers.host}`);
  const reply = (status, body = "") => outgoing.writeHead(status, cors).end(body);
  if (incoming.method === "OPTIONS") return reply(204);
  if (url.pathname === "/change") {
    change(url.searchParams.get("uri"));
    return reply(204);
  }
  if (url.pathname === "/counts") {
    const subscriptions = [...sessions.values()].reduce((n, { watched }) => n + watched.size, 0);
    return reply(200, JSON.stringify({ subscriptions, streams: modern.bus.listenerCount }));
  }
  const chunks = [];
  for await (const chunk of incoming) chunks.push(chunk);
  const body = Buffer.concat(chunks).toString();
  const abort = new AbortController();
  outgoing.on("close", () => abort.abort());
  const request = new Request(url, {
    method: incoming.method,
    headers: incoming.headers,
    signal: abort.signal,
    ...(body && { body }),
  });
  const response = (await isLegacyRequest(request.clone())) ? await legacy(request) : await modern.fetch(request);
  outgoing.writeHead(response.status, { ...Object.fromEntries(response.headers), ...cors });
  outgoing.flushHeaders();
  try {
    for await (const chunk of response.body ?? []) outgoing.write(chunk);
  } catch {
    // The client has closed the connection.
  }
  outgoing.end();
});
http.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${http.address().port}`));
process.stdin.on("end", () => process.exit()).resume();
