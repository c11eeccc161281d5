// What the console says of changes of a URI that nobody has registered.
import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";

const said = [];
console.warn = (message) => said.push(message);
const { notify, register, resourceTools, revisionsOf, shared, unregister } = await import(
  "../../../dist/test/page.mjs"
);

const permission = { origin: "https://x.test", active: () => true, allowed: true };
const add = (path, members) =>
  register({ uri: `https://x.test${path}`, name: "n", read() {}, ...members }, undefined, permission, "");
const remove = (path) => unregister(`https://x.test${path}`, "");
/** Notifies of a URI, or of a path at the page's origin, and ends after the turn. */
const announce = async (...uris) => {
  for (const uri of uris) notify(uri[0] === "/" ? `https://x.test${uri}` : uri, "");
  await null;
};

beforeEach(() => {
  said.length = 0;
  resourceTools({ shared }, revisionsOf(shared));
});
afterEach(() => {
  for (const key of [...Map.prototype.keys.call(shared.entries)]) unregister(key, "");
});

const slips = {
  "/State/Cart": "/state/cart",
  "/state/cart/": "/state/cart",
  "/state/cart?tab=1": "/state/cart",
  "/state/list": "/state/list?all=1",
  "http://x.test/state/cart": "/state/cart",
  "http://127.0.0.1:5173/state/cart": "/state/cart",
  "https://shop.example/STATE/cart/": "/state/cart",
  "/state/crat": "/state/cart",
  "/state/carts": "/state/cart",
  "/stat/cart": "/state/cart",
  "/Product/tea": "/product/{sku}",
  "http://localhost/product/tea": "/product/{sku}",
};
for (const [uri, path] of Object.entries(slips))
  test(`${uri} is taken for ${path}, once`, async () => {
    for (const registered of ["/other", "/state/cart", "/state/list?all=1", "/product/{sku}"]) add(registered);
    await announce(uri, uri);
    await announce(uri);
    const whole = uri[0] === "/" ? `https://x.test${uri}` : uri;
    assert.deepEqual(said, [
      `pagewire: notifyResourceUpdated('${whole}') tells no agent: it is not registered. Is it 'https://x.test${path}'?`,
    ]);
  });

test("nothing is said of URIs that are registered, answered by a template or parameters, or unlike all others", async () => {
  add("/state/cart");
  add("/item/1");
  add("/row/a");
  add("/product/{sku}");
  add("/status{?q}");
  add("/list", { uriSchema: { type: "object", properties: { q: { type: "string" } } } });
  add("/search?q=a");
  await announce("/state/cart", "/product/tea", "/status?q=1", "/list?q=b");
  await announce(
    "/item/2",
    "/row/b",
    "/search?q=b",
    "/state",
    "/state/card/1",
    "/product",
    "/",
    "data:,x",
    "mailto:a@x.test",
  );
  assert.deepEqual(said, []);
});

test("nothing is said of a URI that is about to be registered, or that was", async () => {
  add("/cart");
  add("/cart/");
  notify("https://x.test/Cart", "");
  add("/Cart");
  await null;
  remove("/cart/"); // as a component that is mounted again
  await announce("/cart/");
  add("/cart/");
  remove("/Cart");
  await announce("/cart/", "/Cart");
  assert.deepEqual(said, []);
});

test("a page that announces many unknown URIs costs a bounded number of comparisons", async () => {
  for (let i = 0; i < 1000; i++) add(`/item/${i}`);
  let compared = 0;
  const { forEach } = shared.entries;
  shared.entries.forEach = function (each) {
    forEach.call(this, (value, key) => {
      compared++;
      each(value, key);
    });
  };
  try {
    for (let turn = 0; turn < 10; turn++)
      await announce(...Array.from({ length: 100 }, (_, i) => `/none/${turn}-${i}`));
    await announce("/ITEM/1");
  } finally {
    delete shared.entries.forEach;
  }
  assert.ok(compared > 100_000 && compared <= 200_000, `${compared}`); // mayAnswer and resembles
  assert.deepEqual(said, []);
});
