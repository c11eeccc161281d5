// Reads that share a call of the page's callback, and reads that do not.
import assert from "node:assert/strict";
import { test } from "node:test";

globalThis.window = globalThis;
globalThis.document = new EventTarget();
const { exposes, readsOf, revisionsOf } = await import("../../../dist/test/page.mjs");

const uri = "https://app.test/doc";

/** Reads of one resource, whose callbacks end when the test says so. */
function place() {
  const shared = { stats: {}, entries: new Map() };
  const revisions = revisionsOf(shared);
  const { read } = readsOf({ shared, own: () => true }, revisions);
  const ends = [];
  const register = (text) => {
    const end = () => new Promise((done) => ends.push(() => done(text)));
    shared.entries.set(uri, { descriptor: "{}", read: end });
  };
  register("one");
  return { read: () => read(uri, uri, ""), ends, register, revisions };
}

const textOf = async ({ outcome }) => (await outcome).contents[0].text;

test("cores that ask at the same time share one call", async () => {
  const { read, ends } = place();
  const both = [read(), read()];
  assert.equal(ends.length, 1);
  ends[0]();
  assert.deepEqual(await Promise.all(both.map(textOf)), ["one", "one"]);
});

test("a read after a change shares no call from before", async () => {
  const { read, ends, revisions } = place();
  const before = read();
  revisions.changed(uri);
  const after = [read(), read()];
  assert.equal(ends.length, 2);
  assert.ok(before.revision < after[0].revision);
  for (const end of ends) end();
  await Promise.all([before, ...after].map(textOf));
});

test("a read of a resource that was registered anew shares no call of the former callback", async () => {
  const { read, ends, register } = place();
  const before = read();
  register("two");
  const after = read();
  for (const end of ends) end();
  assert.deepEqual(await Promise.all([before, after].map(textOf)), ["one", "two"]);
});

test("errors are exposed by an option, and by an attribute with or without a value", () => {
  const given = { true: [true, "", "true"], false: [undefined, false, "false"] };
  for (const [exposed, values] of Object.entries(given))
    for (const exposeErrors of values) assert.equal(`${exposes({ exposeErrors })}`, exposed, `${exposeErrors}`);
});
