// Parts of a JSON text.
import assert from "node:assert/strict";
import { test } from "node:test";
import { partOf } from "../../../dist/test/page.mjs";

const text = '{"items":[{"sku":"a"},{"sku":"b"}],"a/b":{"m~n":1},"":0,"none":null}';

for (const [pointer, want] of Object.entries({
  "": text,
  "/items/1/sku": '"b"',
  "/items/0": '{"sku":"a"}',
  "/a~1b/m~0n": "1",
  "/": "0",
  "/none": "null",
}))
  test(`what is at '${pointer}'`, () => assert.deepEqual(partOf(text, pointer), { text: want }));

for (const [pointer, want] of Object.entries({
  items: /does not begin with/,
  "/itms": /there are "items", "a\/b"/,
  "/items/2": /an array of 2/,
  "/items/01": /an array of 2/,
  "/items/length": /an array of 2/,
  "/none/x": /has no parts/,
  "/toString": /there are "items"/,
  "/__proto__": /there are "items"/,
}))
  test(`nothing is at '${pointer}'`, () => assert.match(partOf(text, pointer).why, want));

test("a text that is no JSON", () => assert.match(partOf("{", "/a").why, /not JSON/));
