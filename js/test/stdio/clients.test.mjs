/**
 * The official TypeScript clients, unmodified, over newline-delimited stdio: their own transport starts the engine as
 * a process. They list, read, watch what changes by itself, stop watching, and leave; afterwards no process is left.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as OldTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import {
  ResourceListChangedNotificationSchema as ListChanged,
  ResourceUpdatedNotificationSchema as Updated,
} from "@modelcontextprotocol/sdk/types.js";
import { alive, build, origin, sleep, until } from "./harness.mjs";

const at = (path) => origin + path;
const clock = at("/clock");
const pulse = at("/pulse");
const square = at("/square/12");

let built;
before(async () => (built = await build()));
after(() => built.remove());

/**
 * The clients: how each is made, and what version it must settle on. A legacy client watches one URI at a time by
 * resources/subscribe; a modern one opens a listen. Client 2.4.0 shows its user the modern code for not found in both
 * eras.
 */
const clients = {
  "client 2.4.0, default": { make: (options) => modern(options, {}), version: "2025-11-25" },
  "client 2.4.0, auto": {
    make: (options) => modern(options, { versionNegotiation: { mode: "auto" } }),
    version: "2026-07-28",
  },
  "client 2.4.0, pinned": {
    make: (options) => modern(options, { versionNegotiation: { mode: { pin: "2026-07-28" } } }),
    version: "2026-07-28",
  },
  "sdk 1.32.2": { make: old, version: "2025-11-25", notFound: -32002 },
};

function modern(handlers, options) {
  const client = new Client({ name: "test", version: "1" }, options);
  client.setNotificationHandler("notifications/resources/updated", ({ params }) => handlers.updated(params));
  client.setNotificationHandler("notifications/resources/list_changed", ({ params }) => handlers.listChanged(params));
  return { client, transport: (parameters) => new StdioClientTransport(parameters) };
}

function old(handlers) {
  const client = new OldClient({ name: "test", version: "1" });
  client.setNotificationHandler(Updated, ({ params }) => handlers.updated(params));
  client.setNotificationHandler(ListChanged, ({ params }) => handlers.listChanged(params));
  return { client, transport: (parameters) => new OldTransport(parameters) };
}

/** A client of that kind, connected to a process of its own, and what it has been told. */
async function connect(kind, t) {
  const told = { updated: [], listChanged: 0, errors: [] };
  const { client, transport: of } = kind.make({
    updated: (params) => void told.updated.push(params),
    listChanged: () => void told.listChanged++,
  });
  client.onerror = (error) => void told.errors.push(error);
  const server = built.server();
  const transport = of(server.parameters);
  await client.connect(transport);
  t.after(() => client.close());
  return { client, transport, server, told, isModern: kind.version === "2026-07-28" };
}

/** Which URIs a client has been told of since it had been told of `from` changes. */
const uris = (told, from = 0) => new Set(told.updated.slice(from).map(({ uri }) => uri));

for (const [name, kind] of Object.entries(clients)) {
  test(`${name}: lists, reads, is told of changes, reads again, and leaves`, async (t) => {
    const { client, transport, server, told, isModern } = await connect(kind, t);
    if (client.getNegotiatedProtocolVersion) assert.equal(client.getNegotiatedProtocolVersion(), kind.version);
    assert.deepEqual(client.getServerCapabilities().resources, { subscribe: true, listChanged: true });
    assert.equal(client.getServerVersion().name, "stdio");

    const { resources } = await client.listResources();
    assert.deepEqual(
      resources.map(({ uri }) => uri),
      ["/clock", "/pulse", "/still", "/slow", "/gave_up", "/door"].map(at),
    );
    const { resourceTemplates } = await client.listResourceTemplates();
    assert.deepEqual(
      resourceTemplates.map(({ uriTemplate }) => uriTemplate),
      [at("/square/{n}")],
    );

    assert.deepEqual((await client.readResource({ uri: at("/still") })).contents, [
      { uri: at("/still"), mimeType: "text/plain", text: "still" },
    ]);
    assert.equal((await client.readResource({ uri: square })).contents[0].text, "144");
    const unknown = at("/unknown");
    await assert.rejects(client.readResource({ uri: unknown }), (error) => {
      assert.equal(error.code, kind.notFound ?? -32602);
      assert.deepEqual(error.data, { uri: unknown });
      return true;
    });

    // Watch a resource and a URI of a template.
    const before = Number((await client.readResource({ uri: clock })).contents[0].text);
    const listen = isModern
      ? await client.listen({ resourceSubscriptions: [clock, square], resourcesListChanged: true })
      : undefined;
    if (listen)
      assert.deepEqual(listen.honoredFilter, { resourceSubscriptions: [clock, square], resourcesListChanged: true });
    else for (const uri of [clock, square]) await client.subscribeResource({ uri });
    await until(() => uris(told).size === 2 && told.updated.length >= 6, "told of both several times");
    assert.deepEqual(uris(told), new Set([clock, square]), "told of nothing else");
    assert.ok(
      Number((await client.readResource({ uri: clock })).contents[0].text) > before,
      "reads what it was told of",
    );

    // The list changes too.
    assert.equal((await client.readResource({ uri: at("/door") })).contents[0].text, "open");
    await until(() => told.listChanged >= 1, "told that the list changed");
    assert.ok((await client.listResources()).resources.some(({ uri }) => uri === at("/guest")));

    // Silence: both go on changing every 50 ms, and after the answer to a request nothing older is on its way.
    if (listen) await listen.close();
    else for (const uri of [clock, square]) await client.unsubscribeResource({ uri });
    await client.readResource({ uri: at("/still") });
    const length = told.updated.length;
    await sleep(400);
    assert.equal(told.updated.length, length, "told of a change after it stopped watching");

    const pid = transport.pid;
    await client.close();
    const fates = await server.fates();
    assert.equal(fates.get(pid), "ended", "the process ends by itself when its input does");
    for (const child of fates.keys()) await until(() => !alive(child), `process ${child} is gone`);
    assert.deepEqual(told.errors, [], "nothing that the engine sent was an error to the client");
  });

  test(`${name}: stops watching one URI and still hears of the other`, async (t) => {
    const { client, told, isModern } = await connect(kind, t);
    // Overlapping: both listens name the clock, one the pulse as well.
    let stop;
    if (isModern) {
      await client.listen({ resourceSubscriptions: [clock] });
      const both = await client.listen({ resourceSubscriptions: [clock, pulse] });
      stop = () => both.close();
    } else {
      for (const uri of [clock, pulse]) await client.subscribeResource({ uri });
      stop = () => client.unsubscribeResource({ uri: pulse });
    }
    await until(() => uris(told).size === 2 && told.updated.length >= 6, "told of both");
    await stop();
    await client.readResource({ uri: at("/still") });
    const from = told.updated.length;
    await until(() => told.updated.length >= from + 4, "still told of the clock");
    assert.deepEqual(uris(told, from), new Set([clock]), "told of the pulse after it stopped watching it");
    assert.deepEqual(told.errors, []);
  });

  test(`${name}: gives up a read, and the read is aborted`, async (t) => {
    const { client, told } = await connect(kind, t);
    const gaveUp = async () =>
      (await client.readResource({ uri: at("/gave_up") }, { cacheMode: "refresh" })).contents[0].text;
    assert.equal(await gaveUp(), "0");
    const abort = new AbortController();
    const slow = client.readResource({ uri: at("/slow") }, { signal: abort.signal });
    await client.readResource({ uri: at("/still") }); // by now the read is under way
    abort.abort("no patience");
    await assert.rejects(slow);
    await until(async () => (await gaveUp()) === "1", "the reader of slow was told to stop");
    assert.deepEqual(told.errors, [], "no answer came to what was cancelled");
  });
}

for (const [name, kind] of Object.entries(clients).filter(([, { version }]) => version === "2026-07-28")) {
  test(`${name}: gets each listen's own copy, under its own id`, async (t) => {
    const { client, told } = await connect(kind, t);
    await client.listen({ resourceSubscriptions: [clock] });
    await client.listen({ resourceSubscriptions: [clock] });
    await until(() => told.updated.length >= 6, "told of the clock");
    const ids = told.updated.map(({ _meta }) => _meta["io.modelcontextprotocol/subscriptionId"]);
    assert.equal(new Set(ids).size, 2);
    const copies = [...new Set(ids)].map((id) => ids.filter((x) => x === id).length);
    assert.ok(Math.abs(copies[0] - copies[1]) <= 1, `as many copies for the one as for the other: ${copies}`);
  });

  test(`${name}: sees a server that goes away as one that ended its listens in order`, async (t) => {
    const { client, transport, server, told } = await connect(kind, t);
    const listens = [
      await client.listen({ resourceSubscriptions: [clock] }),
      await client.listen({ resourcesListChanged: true }),
    ];
    const closed = new Promise((done) => (client.onclose = done));
    const pid = transport.pid;
    process.kill(pid, "SIGTERM");
    assert.deepEqual(await Promise.all(listens.map((listen) => listen.closed)), ["graceful", "graceful"]);
    await closed;
    assert.equal((await server.fates()).get(pid), "terminated");
    assert.deepEqual(told.errors, []);
  });
}
