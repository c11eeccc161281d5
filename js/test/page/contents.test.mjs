// The contents that a read's result becomes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { canonical, jsonLength, lengthForLimit, requireOrigin, toContents } from "../../../dist/test/page.mjs";

const uri = "https://x.test/a";
const own = (given) => requireOrigin(canonical(given, ""), "https://x.test", "");
const contents = async (value, mimeType) => (await toContents(value, uri, mimeType, own)).map((item) => ({ ...item }));

const hi = new TextEncoder().encode("\0hi\xff").subarray(1, 3);
const accepted = {
  "a string": ["s", [{ uri, text: "s" }]],
  "an empty string": ["", [{ uri, text: "" }]],
  text: [{ text: "t" }, [{ uri, text: "t" }]],
  "empty text": [{ text: "", blob: undefined }, [{ uri, text: "" }]],
  base64: [{ blob: "aGk=" }, [{ uri, blob: "aGk=" }]],
  "empty base64": [{ blob: "" }, [{ uri, blob: "" }]],
  "an ArrayBuffer": [{ blob: hi.slice().buffer }, [{ uri, blob: "aGk=" }]],
  "part of a buffer": [{ blob: hi }, [{ uri, blob: "aGk=" }]],
  "a DataView": [{ blob: new DataView(hi.buffer, 1, 2) }, [{ uri, blob: "aGk=" }]],
  "a view of wider elements": [{ blob: new Uint16Array([0x6968]) }, [{ uri, blob: "aGk=" }]],
  "a Blob": [{ blob: new Blob(["hi"]) }, [{ uri, blob: "aGk=" }]],
  "an own uri and type": [
    { text: "t", uri: "https://x.test/b/../c", mimeType: "a/b" },
    [{ uri: "https://x.test/c", mimeType: "a/b", text: "t" }],
  ],
  several: [
    { contents: [{ text: "1" }, { blob: "" }] },
    [
      { uri, text: "1" },
      { uri, blob: "" },
    ],
  ],
  "a Proxy": [new Proxy({ text: "p" }, {}), [{ uri, text: "p" }]],
};
for (const [what, [value, expected]] of Object.entries(accepted))
  test(`${what} is accepted`, async () => assert.deepEqual(await contents(value), expected));

test("the resource's type is the default", async () => {
  assert.deepEqual(await contents("s", "text/plain"), [{ uri, mimeType: "text/plain", text: "s" }]);
  assert.deepEqual(await contents({ text: "s", mimeType: "" }, "text/plain"), [{ uri, mimeType: "", text: "s" }]);
});

const detached = new ArrayBuffer(2);
structuredClone(detached, { transfer: [detached] });
const revocable = Proxy.revocable({}, {});
revocable.revoke();
const refused = {
  undefined,
  null: null,
  number: 5,
  function: () => {},
  "empty object": {},
  array: ["a"],
  "text and blob": { text: "", blob: "" },
  "number as text": { text: 5 },
  "null as text": { text: null },
  "unpadded base64": { blob: "aGk" },
  base64url: { blob: "a-_=" },
  "padding inside": { blob: "aG=k" },
  "only padding": { blob: "====" },
  "base64 with a newline": { blob: "aGk\n" },
  "number as blob": { blob: 5 },
  "object as blob": { blob: {} },
  "shared memory": { blob: new SharedArrayBuffer(2) },
  "detached memory": { blob: detached },
  "no contents": { contents: [] },
  "contents that are no array": { contents: { length: 1, 0: { text: "" } } },
  "contents null": { contents: null },
  "a string in contents": { contents: ["s"] },
  "too many": { contents: Array(1001).fill({ text: "" }) },
  "another origin's uri": { text: "", uri: "https://evil.test/" },
  "uri that does not parse": { text: "", uri: "b" },
  "number as uri": { text: "", uri: 5 },
  "number as type": { text: "", mimeType: 5 },
  "a throwing getter": {
    get text() {
      throw new Error("mine");
    },
  },
  "a revoked Proxy": revocable.proxy,
};
for (const [what, value] of Object.entries(refused))
  test(`${what} is refused`, () => assert.rejects(() => contents(value)));

const json = "For JSON, return JSON.stringify(value)";
const cycle = {};
cycle.cycle = cycle;
/** Results of `read`, by what the error says to return instead; "" for none. */
const remedies = {
  [json]: [
    ...[
      { a: 1 },
      {},
      [],
      ["a"],
      [{ text: "t" }],
      5,
      true,
      null,
      new Date(0),
      Promise.resolve({ a: 1 }),
      { text: { a: 1 } },
    ],
    ...[{ text: 5 }, { contents: { a: 1 } }, { contents: "of a letter" }, { contents: [{ a: 1 }] }, { uri, name: "n" }],
    class Cart {
      items = ["tea"];
      toJSON = undefined;
    },
  ].map((value) => (typeof value === "function" ? new value() : value)),
  "Its JSON is {}: return JSON.stringify([...map]), await promise, or await response.text()": [
    ...[new Map([[1, 2]]), new Set(), { text: new Map() }, new Error("mine"), new (class Cart {})(), new WeakMap()],
    ...[{ text: Promise.resolve("t") }, new Response("t"), Promise.resolve(new Response("t"))],
  ],
  "For bytes, return {blob: value}": [hi, hi.buffer, new DataView(hi.buffer), new Blob(["hi"]), Promise.resolve(hi)],
  "": [
    ...[undefined, Symbol("s"), () => {}, 5n, cycle, { n: 5n }],
    ...[{ text: "", blob: "" }, { contents: [] }, { contents: ["s"] }, { blob: 5 }],
  ],
};
for (const [remedy, values] of Object.entries(remedies))
  test(`the error of a wrong result says what to return instead: ${remedy || "nothing"}`, async () => {
    const end = remedy && `. ${remedy}`;
    for (const value of values)
      await assert.rejects(
        async () => contents(await value),
        ({ message }) => {
          assert.equal(message.split("read returns a string, {text}, {blob} or {contents: [...]}")[1], end);
          return true;
        },
      );
  });

test("each member is read once", async () => {
  const reads = [];
  const spy = (target) => new Proxy(target, { get: (object, key) => reads.push(key) && object[key] });
  await contents(spy({ contents: [spy({ text: "t" })] }));
  assert.deepEqual(reads, ["contents", "blob", "mimeType", "text", "uri"]);
});

test("the length is that of the JSON text", async () => {
  for (const value of ["", 'é\n\ud800"', { contents: [{ text: "1" }, { blob: "aGk=" }, { text: "" }] }]) {
    const items = await contents(value, "a/b");
    assert.equal(jsonLength(items), JSON.stringify(items).length);
  }
});

test("the length that the core checks is exact if its limit could be reached", async () => {
  const limit = 16 << 20;
  for (const text of [
    "",
    "\u0001".repeat(1000),
    "é".repeat(1 << 20),
    "\u0001".repeat((limit / 6) | 0),
    "x".repeat(limit - 100),
    "x".repeat(limit + 1),
  ]) {
    const items = await contents(text, "a/b");
    const [exact, checked] = [jsonLength(items), lengthForLimit(items)];
    assert.equal(checked > limit, exact > limit);
    if (checked !== exact) assert.ok(exact < limit, `${exact} may be refused, and counts as ${checked}`);
  }
});

test("a toJSON that a library put on Object.prototype is not called", async (t) => {
  t.after(() => delete Object.prototype.toJSON);
  const items = await toContents("s", uri, undefined, own);
  Object.prototype.toJSON = () => "?";
  const length = jsonLength(items);
  delete Object.prototype.toJSON;
  assert.equal(length, `[{"uri":"${uri}","text":"s"}]`.length);
});
