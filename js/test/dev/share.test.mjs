// Shares of pagewire/dev beside the app's own resources.
import assert from "node:assert/strict";
import { test } from "node:test";

test("a share ends when the app registers its URI, as a URL object too", async () => {
  globalThis.navigator ??= {}; // Node 20 has none
  globalThis.location = new URL("https://x.test/app");
  const taken = new Set();
  const context = {
    registerResource({ uri }, { signal } = {}) {
      assert.ok(!taken.has(`${uri}`), "it is taken");
      taken.add(`${uri}`);
      signal?.addEventListener("abort", () => taken.delete(`${uri}`));
    },
  };
  globalThis.document = { modelContext: context };
  const { giveWay, share } = await import("../../../dist/test/page.mjs");
  giveWay();
  const store = () => ({ getState: () => 1, subscribe: () => () => {} });
  for (const name of ["text", "object"]) {
    share(name, store());
    const uri = `https://x.test/state/${name}`;
    context.registerResource({ uri: name === "text" ? uri : new URL(uri) });
    share(name, store()); // the app's module is evaluated again
  }
  assert.equal(taken.size, 2);
});
