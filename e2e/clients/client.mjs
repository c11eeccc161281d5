/**
 * The official TypeScript client, unmodified. It connects in a mode (legacy, auto, modern) over a transport (stdio with
 * a command, http with a URL), makes the requests that agents make, and prints "done". Any other end is a failure.
 */
import assert from "node:assert/strict";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const [mode, kind, target, ...args] = process.argv.slice(2);
const origin = "https://x.test";
const clock = origin + "/clock";
const square = origin + "/square/12";
const isModern = mode !== "legacy";

const told = { updated: [], resources: 0, tools: 0, errors: [] };
const client = new Client(
  { name: "test", version: "1" },
  {
    legacy: {},
    auto: { versionNegotiation: { mode: "auto" } },
    modern: { versionNegotiation: { mode: { pin: "2026-07-28" } } },
  }[mode],
);
client.onerror = (error) => void told.errors.push(String(error));
client.setNotificationHandler("notifications/resources/updated", ({ params }) => void told.updated.push(params.uri));
client.setNotificationHandler("notifications/resources/list_changed", () => void told.resources++);
client.setNotificationHandler("notifications/tools/list_changed", () => void told.tools++);
await client.connect(
  kind === "http"
    ? new StreamableHTTPClientTransport(new URL(target), { requestInit: { headers: { Authorization: args[0] } } })
    : new StdioClientTransport({ command: target, args }),
);
assert.equal(client.getNegotiatedProtocolVersion(), isModern ? "2026-07-28" : "2025-11-25");

const text = async (uri, options) => (await client.readResource({ uri }, options)).contents[0].text;

// Listing and reading.
assert.ok((await client.listResources()).resources.some(({ uri }) => uri === clock));
assert.ok(
  (await client.listResourceTemplates()).resourceTemplates.some(
    ({ uriTemplate }) => uriTemplate === origin + "/square/{n}",
  ),
);
assert.equal(await text(square), "144");
assert.equal((await client.readResource({ uri: "test://static-binary" })).contents[0].mimeType, "image/png");
await assert.rejects(client.readResource({ uri: origin + "/none" }), (error) => {
  assert.equal(error.code, -32602); // the client shows the modern code in both eras
  assert.deepEqual(error.data, { uri: origin + "/none" });
  return true;
});

// Notifications of changes: of the clock, of the list of resources and of the list of tools.
const listens = isModern
  ? [
      await client.listen({ resourceSubscriptions: [clock] }),
      await client.listen({
        resourceSubscriptions: [clock, square],
        resourcesListChanged: true,
        toolsListChanged: true,
      }),
    ]
  : [];
if (!isModern) for (const uri of [clock, square]) await client.subscribeResource({ uri });
await until(() => told.updated.length >= 6, "told of the clock");
assert.deepEqual(new Set(told.updated), new Set([clock]));
await text(origin + "/door");
await until(() => told.resources >= 1, "told that the list of resources has changed");
await text(origin + "/door");
await client.callTool({ name: "test_trigger_tool_change", arguments: {} });
await until(() => told.tools >= 1, "told that the list of tools has changed");

// One of two listens to the clock ends, and the other continues.
if (isModern) {
  await listens.shift().close();
  const from = told.updated.length;
  await until(() => told.updated.length >= from + 3, "still told of the clock");
}

// Tools, with progress.
assert.ok((await client.listTools()).tools.some(({ name }) => name === "read_page_resource"));
assert.match(
  (await client.callTool({ name: "read_page_resource", arguments: { uri: square } })).content[1].text,
  /^144$/,
);
assert.equal((await client.callTool({ name: "test_error_handling", arguments: {} })).isError, true);
const progress = [];
const name = crypto.randomUUID();
await client.callTool(
  { name: "progress_that_is_heard", arguments: { name } },
  {
    onprogress: (p) => {
      progress.push(p.progress);
      // The client handles a result before earlier progress: the tool waits for this read, after the last progress.
      if (p.progress === 100) void text(`${origin}/heard/${name}`);
    },
  },
);
assert.deepEqual(progress, [0, 50, 100]);

// A cancelled read: the page is notified.
const gaveUp = Number(await text(origin + "/gave_up"));
const abort = new AbortController();
const slow = client.readResource({ uri: origin + "/slow" }, { signal: abort.signal });
await text(square); // by now the read is under way
abort.abort("no patience");
await assert.rejects(slow);
await until(
  async () => Number(await text(origin + "/gave_up", { cacheMode: "refresh" })) > gaveUp,
  "the page has heard that no client waits",
);

// Silence, after the last resource is no longer watched. Notifications under way on another stream may still arrive.
if (isModern) for (const listen of listens) await listen.close();
else for (const uri of [clock, square]) await client.unsubscribeResource({ uri });
await text(square);
await new Promise((done) => setTimeout(done, 100));
const length = told.updated.length;
await new Promise((done) => setTimeout(done, 300));
assert.equal(told.updated.length, length, "told of a change after it stopped watching");
assert.deepEqual(told.errors, []);
if (kind === "http" && !isModern) await client.transport.terminateSession();
await client.close();
console.log("done");

async function until(condition, what) {
  for (const end = Date.now() + 80_000; !(await condition()); await new Promise((done) => setTimeout(done, 5))) {
    if (Date.now() > end) throw new Error(`still not so after 80 s: ${what}; told ${JSON.stringify(told)}`);
  }
}
