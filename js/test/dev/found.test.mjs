// Stores that are found by what frameworks leave at their elements. e2e/frameworks_test.go finds those of real apps.
import assert from "node:assert/strict";
import { mock, test } from "node:test";

globalThis.navigator ??= {}; // Node 20 has none
globalThis.Node ??= class {};
globalThis.Window ??= class {};

test("a value that refuses to be looked at, as another origin's window does, hides no store beside it", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  mock.method(console, "debug", () => {});
  const window = new Proxy({}, { get: () => assert.fail("SecurityError") });
  const client = { getQueryCache: () => ({ getAll: () => [], subscribe() {} }) };
  const store = { getState: () => 1, subscribe() {} };
  const top = { memoizedProps: { value: window } };
  top.child = { memoizedProps: { store }, return: top };
  const elements = [
    { __reactContainer$1: { stateNode: { current: top } } },
    { __vue_app__: { config: { globalProperties: {} }, _context: { provides: { window, client } } } },
  ];
  const found = [];
  globalThis.location = new URL("https://x.test/app");
  globalThis.document = {
    querySelectorAll: () => elements,
    modelContext: { registerResource: ({ name }) => found.push(name) },
  };
  globalThis.MutationObserver = class {
    observe() {}
  };
  globalThis.addEventListener = () => {};
  const { findStores } = await import("../../../dist/test/page.mjs");
  findStores();
  mock.timers.tick(1);
  assert.deepEqual(found.sort(), ["queries", "zustand"]);
});
