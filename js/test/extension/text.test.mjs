/**
 * Texts in the inspector, the panel and the demos: whole words of a change, lines of JSON, and
 * warnings.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { changed, pretty, Shown, warnings, what } from "../../../dist/test/extension.mjs";

test("a change is of whole words and numbers", () => {
  for (const [before, now, want] of [
    ['{"total": 12.50}', '{"total": 12.75}', "12.75"],
    ["1,234 pieces", "1,934 pieces", "1,934"],
    ["[1,234,5]", "[1,934,5]", "1,934"],
    ["[1,23]", "[1,24]", "24"],
    ["at -5 °C", "at 5 °C", "5"],
    ["the cart", "the cast", "cast"],
    ["größer", "größte", "größte"],
    ["a b c", "a x y c", "x y"],
    ["don't", "won't", "won't"],
    ["a b", "a", ""],
    ["😀", "😁", "😁"],
    ["", "new", "new"],
    ["same", "same", ""],
  ]) {
    const { from, to } = changed(before, now);
    assert.equal(now.slice(from, to), want, `${before} → ${now}`);
    assert.ok(before.startsWith(now.slice(0, from)) && before.endsWith(now.slice(to)));
  }
});

test("JSON is broken into lines, and its numbers stay as they are", () => {
  assert.equal(
    pretty('{"a":[1.50,12345678901234567890, "x, {y}: \\"z\\""],"b":{ },"c":[]}'),
    '{\n  "a": [\n    1.50,\n    12345678901234567890,\n    "x, {y}: \\"z\\""\n  ],\n  "b": {},\n  "c": []\n}',
  );
  assert.equal(pretty("{no: JSON}"), "{no: JSON}");
  const deep = "[".repeat(2000) + "]".repeat(2000);
  assert.ok(pretty(deep).length < 4000 * 70, "an indent is bounded");
});

test("a mark is of the last change, and a read of the same is none", () => {
  const shown = new Shown();
  const marked = () => shown.text.slice(shown.mark.from, shown.mark.to);
  assert.equal(shown.take('{"n":1}'), false, "the first read");
  assert.equal(marked(), "");
  assert.equal(shown.take('{"n":2}'), true);
  assert.equal(marked(), "2");
  assert.equal(shown.take('{"n":2}'), false);
  assert.equal(marked(), "2", "it stays");
  assert.equal(shown.text, '{\n  "n": 2\n}');
});

test("a message is named by its method, or by what it is, also if its end is missing", () => {
  for (const [text, want] of [
    ['{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"https://a.exa', "resources/read #7"],
    ['{"jsonrpc":"2.0","method":"notifications/resources/updated"}', "notifications/resources/updated"],
    ['{"jsonrpc":"2.0","id":"a-1","result":{"contents":[', "result #a-1"],
    ['{"jsonrpc":"2.0","id":8,"error":{"code":-32602', "error #8"],
    ['[["read",3,"https://a.example/cart"],["touch","', "read #3, touch"],
    ["=12 {}", "contents #12"],
    ["[]", "received"],
  ])
    assert.equal(what(text), want);
});

test("an author is warned of what a model cannot use", () => {
  const good = { uri: "https://a.example/cart", name: "Cart", description: "What the user buys." };
  const open = (bytes, now) => ({ value: { text: "{", mimeType: "application/json", bytes }, rate: { now } });
  assert.deepEqual(warnings(good, open((2 << 20) - 1, 49)), []);
  for (const [of, followed, want] of [
    [{ ...good, description: "" }, undefined, /No description/],
    [{ ...good, name: "data" }, undefined, /“data” says nothing/],
    [{ ...good, name: "state-2" }, undefined, /says nothing/],
    [{ name: "tool1_tab3", description: "Buys." }, undefined, /says nothing/],
    [good, open(2 << 20, 0), /2 MB of JSON/],
    [good, open(10, 50), /50 changes/],
  ]) {
    const all = warnings(of, followed);
    assert.equal(all.length, 1, String(all));
    assert.match(all[0], want);
  }
});
