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
  const audience = [...Array.prototype.slice.call(out.annotations.audience)];
  const annotations = { priority: 0.5, subscribeHint: false, audience: ["user"] };
  assert.deepEqual(
    { ...out, annotations: { ...out.annotations, audience } },
    { uri: "u", name: "5", title: "t", read, size: 12, minUpdateInterval: 0, annotations },
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
  const names =
    "annotations contentSchema description icons mimeType minUpdateInterval name read size title uri uriSchema";
  assert.deepEqual(reads, names.split(" "));
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
  const given = {
    get annotations() {
      throw mine;
    },
  };
  assert.throws(
    () => convert(Resource, given, ""),
    (e) => e === mine,
  );
});

const member = (name, of = "ModelContextResource") => `Failed to read the '${name}' property from '${of}': `;
const refused = {
  nothing: [undefined, "The provided value is not of type 'ModelContextResource'."],
  "a string": ["text", "The provided value is not of type 'ModelContextResource'."],
  "no name": [{ uri: "u", read }, member("name") + "Required member is undefined."],
  "a symbol": [{ uri: "u", name: Symbol(), read }, member("name") + "Cannot convert a Symbol value to a string"],
  "no function": [{ uri: "u", name: "n", read: {} }, member("read") + "The given value is not a function."],
  "a number for annotations": [
    { annotations: 5 },
    member("annotations") + "The provided value is not of type 'ModelContextResourceAnnotations'.",
  ],
  NaN: [
    { annotations: { priority: NaN } },
    `${member("annotations")}${member("priority", "ModelContextResourceAnnotations")}The provided double value is non-finite.`,
  ],
  "another word": [
    { annotations: { audience: ["all"] } },
    `${member("annotations")}${member("audience", "ModelContextResourceAnnotations")}The provided value 'all' is not a valid enum value of type ModelContextAudience.`,
  ],
  "no sequence": [{ icons: "x" }, member("icons") + "The provided value cannot be converted to a sequence."],
  "no iterator": [{ icons: {} }, member("icons") + "The object must have a callable @@iterator property."],
  "below the range": [
    { minUpdateInterval: -1 },
    member("minUpdateInterval") + "Value is outside the 'unsigned long' value range.",
  ],
  "above the range": [
    { minUpdateInterval: 2 ** 32 },
    member("minUpdateInterval") + "Value is outside the 'unsigned long' value range.",
  ],
  "an infinite size": [
    { uri: "u", name: "n", read, size: Infinity },
    member("size") + "Value is outside the 'unsigned long long' value range.",
  ],
  "a string schema": [
    { uri: "u", name: "n", read, uriSchema: "{}" },
    member("uriSchema") + "Failed to convert value to 'object'.",
  ],
};
for (const [what, [value, message]] of Object.entries(refused))
  test(`${what} is a TypeError that names the member`, () =>
    assert.throws(() => convert(Resource, value, "Failed: "), { name: "TypeError", message: "Failed: " + message }));

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
