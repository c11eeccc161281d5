/**
 * The official TypeScript clients, unmodified, complete the story against the built core under
 * Node.
 */
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

/** A page with one resource, whose value `change` counts up. */
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
    while (!updated.length) await sleep(1);
    assert.deepEqual(updated, [uri]);
    assert.equal((await client.readResource({ uri })).contents[0].text, "1");

    if (listen) await listen.close();
    else await client.unsubscribeResource({ uri });
    p.change();
    await client.listResources(); // an update would be sent at once, before this answer
    assert.deepEqual(updated, [uri], "told of a change after it unsubscribed");

    await assert.rejects(
      client.readResource({ uri: `${origin}/unknown` }),
      (error) => error.code === -32602 && error.data.uri === `${origin}/unknown`,
    );
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
  while (!updated.length || !listChanged) await sleep(1);
  assert.deepEqual(updated, [uri]);
  await client.unsubscribeResource({ uri });
  p.change();
  await client.ping(); // an update would be sent at once, before this answer
  assert.deepEqual(updated, [uri]);
  await client.close();
});
