// The three methods, after conversion: the calls of a core, and their order.
import assert from "node:assert/strict";
import fs from "node:fs";
import { afterEach, beforeEach, test } from "node:test";
import { maxDescription, maxResources, notify, register, shared, unregister } from "../../../dist/test/page.mjs";

const permission = { origin: "https://x.test", active: () => true, allowed: true };
const uri = "https://x.test/a";
const add = (members, signal, given = permission) =>
  register({ uri, name: "n", read() {}, ...members }, signal, given, "");
let calls;

beforeEach(() => {
  calls = [];
  shared.core = {
    register: (descriptor) => calls.push(["register", JSON.parse(descriptor)]),
    unregister: (key) => calls.push(["unregister", key]),
    touch: (key) => calls.push(["touch", key]),
  };
});
afterEach(() => {
  shared.core = undefined;
  for (const key of [...Map.prototype.keys.call(shared.entries)]) unregister(key, "");
});

test("a core is told of each change, under the canonical URI, without the callback", () => {
  add({ uri: "HTTPS://x.test/b/../a", uriSchema: { type: "object" } });
  notify("https://x.test/./a", "");
  unregister("https://X.TEST/a", "");
  assert.deepEqual(calls, [
    ["register", { uri, name: "n", uriSchema: { type: "object" } }],
    ["touch", uri],
    ["unregister", uri],
  ]);
});

test("without a core everything works as well", () => {
  shared.core = undefined;
  add();
  assert.throws(() => add(), { name: "InvalidStateError", message: `'${uri}' is already registered.` });
  notify(uri, "");
  assert.equal(shared.entries.size, 1);
  unregister(uri, "");
  assert.equal(shared.entries.size, 0);
});

test("what is refused leaves nothing behind", () => {
  const cycle = {};
  cycle.cycle = cycle;
  const cases = [
    [{ annotations: { priority: 1.5 } }, "TypeError"],
    [{ annotations: { priority: -0.1 } }, "TypeError"],
    [{ minUpdateInterval: 86_400_001 }, "TypeError"],
    [{ contentSchema: [] }, "TypeError"],
    [{ uriSchema: [] }, "TypeError"],
    [{ uriSchema: cycle }, "TypeError"],
    [{ uriSchema: { toJSON() {} } }, "TypeError"],
    [{ uri: "a" }, "TypeError"],
    [{ uri: "https://evil.test/a" }, "SecurityError"],
    [{ description: "x".repeat(maxDescription) }, "QuotaExceededError"],
  ];
  for (const [members, name] of cases) assert.throws(() => add(members), { name });
  assert.throws(() => add({}, undefined, { ...permission, active: () => false }), { name: "InvalidStateError" });
  assert.throws(() => add({}, undefined, { ...permission, allowed: false }), { name: "NotAllowedError" });
  assert.equal(shared.entries.size, 0);
  assert.deepEqual(calls, []);
});

test("what is accepted is what cores list", () => {
  // bridge's TestAcceptedRegistrations reads the same vectors.
  const text = fs.readFileSync(new URL("../../../bridge/testdata/registrations.jsonl", import.meta.url), "utf8");
  for (const line of text.trim().split("\n")) {
    const { what, accepted, resource } = JSON.parse(line);
    if (!accepted) assert.throws(() => add(resource), what);
    else {
      assert.doesNotThrow(() => add(resource), what);
      unregister(resource.uri ?? uri, "");
    }
  }
  assert.throws(() => add({ uri: `https://x.test/${"é".repeat(8000)}` }), { name: "QuotaExceededError" });
});

test("the order of the errors is that of the algorithm", () => {
  const none = { origin: "https://x.test", active: () => false, allowed: false };
  assert.throws(() => add({ uri: "a" }, undefined, none), { name: "InvalidStateError" });
  assert.throws(() => add({ uri: "a" }, undefined, { ...none, active: () => true }), { name: "NotAllowedError" });
  assert.throws(() => add({ uri: "https://evil.test/#f" }), { name: "TypeError" });
});

test("the number of resources has a limit", () => {
  shared.core = undefined;
  for (let i = 0; i < maxResources; i++) add({ uri: `https://x.test/${i}` });
  assert.throws(() => add(), {
    name: "QuotaExceededError",
    message: `The number of resources reaches the limit of ${maxResources}.`,
  });
  unregister("https://x.test/0", "");
  add();
});

test("a signal unregisters its own registration and no other", () => {
  const controller = new AbortController();
  add({}, controller.signal);
  unregister(uri, "");
  add({ name: "second" });
  controller.abort();
  assert.equal(shared.entries.size, 1);
  const second = new AbortController();
  add({ uri: uri + "2" }, second.signal);
  second.abort();
  assert.equal(shared.entries.size, 1);
  assert.deepEqual(calls.at(-1), ["unregister", uri + "2"]);
});

test("a schema is counted in levels, whatever a library puts on prototypes", () => {
  const nested = (levels) => (levels ? { "\n": [nested(levels - 2)] } : {});
  const libraries = [Object, Array, Function];
  for (const { prototype } of libraries) prototype.clone = function clone() {};
  try {
    add({ contentSchema: nested(60) });
    assert.throws(() => add({ uri: uri + "2", contentSchema: nested(62) }), {
      message: "The 'contentSchema' is not a JSON object of at most 60 levels.",
    });
    assert.throws(() => add({ uri: uri + "2", uriSchema: { a: nested(60) } }), { name: "TypeError" });
  } finally {
    for (const { prototype } of libraries) delete prototype.clone;
  }
});

test("a signal that is aborted registers nothing, but errors are still thrown", () => {
  const signal = AbortSignal.abort();
  assert.equal(add({}, signal), undefined);
  assert.equal(shared.entries.size, 0);
  assert.throws(() => add({ uri: "a" }, signal), { name: "TypeError" });
});

test("a toJSON that registers the same URI finds it free, and then it is taken", () => {
  const toJSON = () => {
    add({ name: "inner" });
    return {};
  };
  assert.throws(() => add({ uriSchema: { toJSON } }), { name: "InvalidStateError" });
  assert.equal(JSON.parse(shared.entries.get(uri).descriptor).name, "inner");
});

test("calls within one turn are two for the core, the last state included", async () => {
  add();
  calls = [];
  for (let i = 0; i < 10_000; i++) notify(uri, "");
  assert.equal(calls.length, 1);
  await undefined;
  await undefined;
  assert.deepEqual(calls, Array(2).fill(["touch", uri]));
  notify(uri, "");
  assert.equal(calls.length, 3);
  await undefined;
  await undefined;
  assert.equal(calls.length, 3);
});

test("unregister of an unknown URI is a NotFoundError, of nonsense a TypeError", () => {
  assert.throws(() => unregister(uri, ""), { name: "NotFoundError" });
  assert.throws(() => unregister("a", ""), { name: "TypeError" });
});

test("notify of an unknown URI is counted, and the core decides", () => {
  const before = shared.stats.unknown;
  notify("https://x.test/t/5", "");
  assert.equal(shared.stats.unknown, before + 1);
  assert.deepEqual(calls, [["touch", "https://x.test/t/5"]]);
});
