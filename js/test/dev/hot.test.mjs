// After an update, a store that is new must not take the place of another, living one by the same name.
import assert from "node:assert/strict";
import { test } from "node:test";

globalThis.navigator ??= {}; // Node 20 has none
globalThis.location = new URL("https://x.test/app");

/** What agents read, by path. */
function pageOf() {
  const offered = new Map();
  globalThis.Node ??= class {};
  globalThis.Window ??= class {};
  globalThis.document = {
    modelContext: {
      registerResource(resource, { signal } = {}) {
        const path = new URL(resource.uri).pathname;
        assert.ok(!offered.has(path), `${path} is taken`);
        offered.set(path, resource);
        signal?.addEventListener("abort", () => offered.get(path) === resource && offered.delete(path));
      },
      notifyResourceUpdated() {},
    },
  };
  return async () =>
    Object.fromEntries(
      await Promise.all(
        [...offered].map(async ([path, { read }]) => [path, JSON.parse((await read()).text ?? (await read()))]),
      ),
    );
}
const store = (state) => ({ getState: () => state, subscribe: () => () => {} });

test("features/user/store.ts is edited, beside features/cart/store.ts", async () => {
  const read = pageOf();
  const { expire, share } = await import("../../../dist/test/page.mjs");
  share("store", store({ cart: ["tea"] }), undefined, "/app/features/cart/store.ts"); // features/cart/store.ts
  share("store", store({ user: "old" }), undefined, "/app/features/user/store.ts"); // features/user/store.ts
  expire(); // vite:beforeUpdate, of features/user/store.ts
  share("store", store({ user: "new" }), undefined, "/app/features/user/store.ts");
  const all = Object.values(await read());
  assert.deepEqual(
    all.find(({ cart }) => cart),
    { cart: ["tea"] },
    `the cart is not shared any more: ${JSON.stringify(all)}`,
  );
  assert.ok(!all.some(({ user }) => user === "old"), `a store that is gone is still shared: ${JSON.stringify(all)}`);
});

test("after the update of a style sheet, a dialog makes a store of its own", async () => {
  const read = pageOf();
  const { expire, share } = await import("../../../dist/test/page.mjs");
  share("zustand", store({ cart: ["tea"] }), undefined, null); // what findStores() has found
  expire(); // vite:beforeUpdate, of style.css
  share("zustand", store({ dialog: 1 }), undefined, null); // found later
  const all = Object.values(await read());
  assert.ok(
    all.some(({ cart }) => cart),
    `the cart is not shared any more: ${JSON.stringify(all)}`,
  );
});
