// Web IDL conversion, as the page API's three methods do it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { convert, operations } from "../../../dist/test/page.mjs";

const [Resource, Options] = operations.find(([name]) => name === "registerResource")[1];
const read = () => "";
const resource = (members) => convert(Resource, { uri: "u", name: "n", read, ...members }, "Failed: ");

test("members come out as their types", () => {
  const out = resource({
    name: 5,
    title: { toString: () => "t" },
    size: "12.9",
    minUpdateInterval: -0.5,
    annotations: { priority: "0.5", audience: new Set(["user"]) },
  });
  assert.deepEqual(
    {
      ...out,
      annotations: { ...out.annotations, audience: [...Array.prototype.slice.call(out.annotations.audience)] },
    },
    {
      uri: "u",
      name: "5",
      title: "t",
      read,
      size: 12,
      minUpdateInterval: 0,
      annotations: { priority: 0.5, subscribeHint: false, audience: ["user"] },
    },
  );
});

test("what comes out has no prototype, so a toJSON on one is not found", () => {
  const out = resource({ icons: [{ src: "data:,x" }] });
  assert.equal(Object.getPrototypeOf(out), null);
  assert.equal(Object.getPrototypeOf(out.icons), null);
  assert.equal(Object.getPrototypeOf(out.icons[0]), null);
});

test("each member is read once, in the order of their names", () => {
  const reads = [];
  const proxy = new Proxy({ uri: "u", name: "n", read }, { get: (target, key) => reads.push(key) && target[key] });
  convert(Resource, proxy, "");
  assert.deepEqual(reads, [
    "annotations",
    "contentSchema",
    "description",
    "icons",
    "mimeType",
    "minUpdateInterval",
    "name",
    "read",
    "size",
    "title",
    "uri",
    "uriSchema",
  ]);
});

test("undefined is absent, null is a value", () => {
  assert.equal("title" in resource({ title: undefined }), false);
  assert.equal(resource({ title: null }).title, "null");
});

test("lone surrogates are replaced in a USVString", () => {
  assert.equal(resource({ icons: [{ src: "data:,\ud800" }] }).icons[0].src, "data:,\ufffd");
});

test("a getter's own error comes through", () => {
  const mine = new RangeError("mine");
  assert.throws(
    () =>
      convert(
        Resource,
        {
          get annotations() {
            throw mine;
          },
        },
        "",
      ),
    (e) => e === mine,
  );
});

const refused = {
  nothing: [undefined, "The provided value is not of type 'ModelContextResource'."],
  "a string": ["text", "The provided value is not of type 'ModelContextResource'."],
  "no name": [
    { uri: "u", read },
    "Failed to read the 'name' property from 'ModelContextResource': Required member is undefined.",
  ],
  "a symbol": [
    { uri: "u", name: Symbol(), read },
    "Failed to read the 'name' property from 'ModelContextResource': Cannot convert a Symbol value to a string",
  ],
  "no function": [
    { uri: "u", name: "n", read: {} },
    "Failed to read the 'read' property from 'ModelContextResource': The given value is not a function.",
  ],
  "a number for annotations": [
    { annotations: 5 },
    "Failed to read the 'annotations' property from 'ModelContextResource': The provided value is not of type 'ModelContextResourceAnnotations'.",
  ],
  NaN: [
    { annotations: { priority: NaN } },
    "Failed to read the 'annotations' property from 'ModelContextResource': Failed to read the 'priority' property from 'ModelContextResourceAnnotations': The provided double value is non-finite.",
  ],
  "another word": [
    { annotations: { audience: ["all"] } },
    "Failed to read the 'annotations' property from 'ModelContextResource': Failed to read the 'audience' property from 'ModelContextResourceAnnotations': The provided value 'all' is not a valid enum value of type ModelContextAudience.",
  ],
  "no sequence": [
    { icons: "x" },
    "Failed to read the 'icons' property from 'ModelContextResource': The provided value cannot be converted to a sequence.",
  ],
  "no iterator": [
    { icons: {} },
    "Failed to read the 'icons' property from 'ModelContextResource': The object must have a callable @@iterator property.",
  ],
  "below the range": [
    { minUpdateInterval: -1 },
    "Failed to read the 'minUpdateInterval' property from 'ModelContextResource': Value is outside the 'unsigned long' value range.",
  ],
  "above the range": [
    { minUpdateInterval: 2 ** 32 },
    "Failed to read the 'minUpdateInterval' property from 'ModelContextResource': Value is outside the 'unsigned long' value range.",
  ],
  "an infinite size": [
    { uri: "u", name: "n", read, size: Infinity },
    "Failed to read the 'size' property from 'ModelContextResource': Value is outside the 'unsigned long long' value range.",
  ],
  "a string schema": [
    { uri: "u", name: "n", read, uriSchema: "{}" },
    "Failed to read the 'uriSchema' property from 'ModelContextResource': Failed to convert value to 'object'.",
  ],
};
for (const [what, [value, message]] of Object.entries(refused)) {
  test(`${what} is a TypeError that names the member`, () => {
    assert.throws(() => convert(Resource, value, "Failed: "), { name: "TypeError", message: "Failed: " + message });
  });
}

test("options may be absent; a signal must be one", () => {
  for (const value of [undefined, null, {}]) assert.deepEqual({ ...convert(Options, value, "") }, {});
  const { signal } = new AbortController();
  assert.equal(convert(Options, { signal }, "").signal, signal);
  for (const value of [5, null, {}, Object.create(AbortSignal.prototype)]) {
    assert.throws(() => convert(Options, { signal: value }, ""), {
      name: "TypeError",
      message: /Failed to convert value to 'AbortSignal'/,
    });
  }
});
