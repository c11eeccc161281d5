// Parts of a JSON text, by the vectors that the gateway's tests read, too.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { partOf } from "../../../dist/test/page.mjs";

const file = new URL("../../../bridge/gateway/live/delta/testdata/pointers.json", import.meta.url);
const { text, found, nothing } = JSON.parse(readFileSync(file, "utf8"));
const refused = (words) => (refusal) => words.test(refusal.words);

test("what a pointer points to", () => {
  for (const [pointer, part] of Object.entries({ "": text, ...found }))
    assert.deepEqual(JSON.parse(partOf(text, pointer)), JSON.parse(part), pointer);
});

test("a pointer to nothing is refused, and why", () => {
  for (const pointer of nothing) assert.throws(() => partOf(text, pointer), refused(/./), pointer);
  for (const [pointer, words] of [
    ["items", /does not begin with/],
    ["/itms", /there are "items", "a\/b"/],
    ["/items/2", /an array of 2/],
    ["/none/x", /has no parts/],
  ])
    assert.throws(() => partOf(text, pointer), refused(words));
  assert.throws(() => partOf("{", "/a"), refused(/not JSON/));
});
