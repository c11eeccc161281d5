/** The official TypeScript clients, unmodified, complete the story against the built core under Node. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Client } from "@modelcontextprotocol/client";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import {
  ResourceListChangedNotificationSchema,
  ResourceUpdatedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { origin, page, sleep } from "./harness.mjs";

const uri = `${origin}/state`;

/** A page with one resource, and what its value is. */
async function counter() {
  let n = 0;
  const p = await page({ [uri]: async () => [{ uri, mimeType: "text/plain", text: String(n) }] });
  p.core.register(JSON.stringify({ uri, name: "State", title: "The state", annotations: { priority: 0.5 } }));
  return Object.assign(p, {
    change() {
      n++;
      p.core.touch(uri, 1);
    },
  });
}

const modes = {
  "client 2.4.0, default": [{}, "2025-11-25"],
  "client 2.4.0, auto": [{ versionNegotiation: { mode: "auto" } }, "2026-07-28"],
  "client 2.4.0, pinned": [{ versionNegotiation: { mode: { pin: "2026-07-28" } } }, "2026-07-28"],
};

for (const [name, [options, version]] of Object.entries(modes)) {
  test(name, async () => {
    const p = await counter();
    const client = new Client({ name: "test", version: "1" }, options);
    const updated = [];
    client.setNotificationHandler("notifications/resources/updated", ({ params }) => void updated.push(params.uri));
    await client.connect(p.connect());
    assert.equal(client.getNegotiatedProtocolVersion(), version);
    assert.deepEqual(client.getServerCapabilities().resources, { subscribe: true, listChanged: true });

    const { resources } = await client.listResources();
    assert.deepEqual(resources, [{ uri, name: "State", title: "The state", annotations: { priority: 0.5 } }]);
    assert.equal((await client.readResource({ uri })).contents[0].text, "0");

    const listen =
      version === "2026-07-28"
        ? await client.listen({ resourceSubscriptions: [uri], resourcesListChanged: true })
        : undefined;
    if (!listen) await client.subscribeResource({ uri });
    p.change();
    await sleep(20);
    assert.deepEqual(updated, [uri]);
    assert.equal((await client.readResource({ uri })).contents[0].text, "1");

    if (listen) await listen.close();
    else await client.unsubscribeResource({ uri });
    await sleep(150);
    p.change();
    await sleep(150);
    assert.deepEqual(updated, [uri], "told of a change after it unsubscribed");

    await assert.rejects(
      client.readResource({ uri: `${origin}/unknown` }),
      (error) => error.code === -32602 && error.data.uri === `${origin}/unknown`,
    );
    await client.close();
  });
}

for (const [name, [options]] of Object.entries(modes).filter(([, [, version]]) => version === "2026-07-28")) {
  test(`${name}: overlapping listens, each with its own copy, ended one by one`, async () => {
    const p = await counter();
    const more = `${origin}/more`;
    p.core.register(JSON.stringify({ uri: more, name: "More" }));
    const client = new Client({ name: "test", version: "1" }, options);
    const updated = [];
    client.setNotificationHandler(
      "notifications/resources/updated",
      ({ params }) => void updated.push([params._meta["io.modelcontextprotocol/subscriptionId"], params.uri]),
    );
    await client.connect(p.connect());
    const one = await client.listen({ resourceSubscriptions: [uri] });
    const two = await client.listen({ resourceSubscriptions: [uri, more] });
    const ids = [];
    const told = async (...changed) => {
      updated.length = 0;
      for (const changedURI of changed) p.core.touch(changedURI, 1);
      await sleep(250); // longer than the interval between two updates of one URI
      return updated.map(([id, told]) => [ids.indexOf(id), told]);
    };
    await told(uri);
    ids.push(...updated.map(([id]) => id));
    assert.equal(new Set(ids).size, 2, "each listen has an id of its own");
    assert.deepEqual(await told(uri, more), [
      [0, uri],
      [1, uri],
      [1, more],
    ]);
    await two.close();
    assert.equal(await two.closed, "local");
    assert.deepEqual(await told(uri, more), [[0, uri]]);
    await one.close();
    assert.deepEqual(await told(uri, more), []);
    await client.close();
  });
}

test("sdk 1.32.2", async () => {
  const p = await counter();
  const client = new OldClient({ name: "test", version: "1" });
  const updated = [];
  let listChanged = 0;
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => void updated.push(params.uri));
  client.setNotificationHandler(ResourceListChangedNotificationSchema, () => void listChanged++);
  await client.connect(p.connect());
  await client.ping();
  assert.equal((await client.listResources()).resources.length, 1);
  assert.deepEqual((await client.listResourceTemplates()).resourceTemplates, []);
  assert.equal((await client.readResource({ uri })).contents[0].text, "0");
  await client.subscribeResource({ uri });
  p.change();
  p.core.register(JSON.stringify({ uri: `${origin}/more`, name: "More" }));
  await sleep(50);
  assert.deepEqual(updated, [uri]);
  assert.ok(listChanged >= 1);
  await client.unsubscribeResource({ uri });
  await sleep(150);
  p.change();
  await sleep(150);
  assert.deepEqual(updated, [uri]);
  await client.close();
});
