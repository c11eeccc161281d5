// What agents get of state that JSON cannot say, or that is too much.
import assert from "node:assert/strict";
import { test } from "node:test";
import { plain } from "../../../dist/test/page.mjs";

globalThis.Node ??= class {};
globalThis.Window ??= class {};

test("values that JSON has not", () => {
  const value = {
    map: new Map([["a", new Set([1])]]),
    date: new Date(0),
    invalid: new Date(Number.NaN),
    big: 10n ** 20n,
    not: Number.NaN,
    error: new TypeError("wrong"),
    pattern: /a+/g,
    bytes: new Uint8Array(7),
    promise: Promise.resolve(1),
    nothing: undefined,
    act() {},
    list: [undefined, () => {}, Symbol("a")],
  };
  assert.deepEqual(plain(value), {
    map: { a: [1] },
    date: "1970-01-01T00:00:00.000Z",
    invalid: null,
    big: "100000000000000000000",
    not: "NaN",
    error: "TypeError: wrong",
    pattern: "/a+/g",
    bytes: "[Uint8Array of 7 bytes]",
    promise: "[Promise]",
    nothing: undefined,
    act: undefined,
    list: [null, null, null],
  });
});

test("cycles, depths and getters that throw", () => {
  const state = { cart: { items: [{}] }, shared: {} };
  state.cart.items[0].of = state.cart;
  state.again = state.shared;
  Object.defineProperty(state, "bad", {
    enumerable: true,
    get() {
      throw new Error("not now");
    },
  });
  Object.defineProperty(state, "worse", {
    enumerable: true,
    get() {
      throw Object.create(null); // which no text is made of
    },
  });
  assert.deepEqual(plain(state), {
    cart: { items: [{ of: "[cycle]" }] },
    shared: {},
    again: {},
    bad: "[cannot be read: Error: not now]",
    worse: "[cannot be read: [Object]]",
  });
  let chain = {};
  for (let i = 0; i < 100_000; i++) chain = { next: chain };
  assert.match(JSON.stringify(plain(chain)), /deeper levels are cut/);
  const hostile = new Proxy({}, { ownKeys: () => assert.fail("no keys") });
  assert.match(plain({ hostile }).hostile, /^\[cannot be read: .*no keys/);
});

test("a store of 10 MB", () => {
  const row = (i) => ({ id: i, text: "x".repeat(80) });
  const rows = Array.from({ length: 100_000 }, (_, i) => row(i));
  const value = plain({
    rows,
    log: "y".repeat(10_000_000),
    byId: new Map(rows.map((r) => [r.id, r])),
    user: { name: "Ada" },
  });
  const text = JSON.stringify(value);
  assert.ok(text.length < 200_000, `${text.length} characters`);
  assert.match(value.rows.at(-1), /^\[\d+ more are cut\]$/);
  assert.match(value.log, /… \[9996000 more characters\]$/);
  assert.match(value.byId["…"], /^\d+ more are cut$/);
  assert.deepEqual(value.user, { name: "Ada" }, "what comes after has its room");
});
