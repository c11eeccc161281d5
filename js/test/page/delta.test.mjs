// The differences that the page's own tools give, applied as an agent does.
import assert from "node:assert/strict";
import { test } from "node:test";

const { difference } = await import("../../../dist/test/page.mjs");

function patched(value, patch) {
  for (const { op, path, value: to } of patch) {
    const names = path
      .split("/")
      .slice(1)
      .map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"));
    const last = names.pop();
    const at = names.reduce((part, name) => part[name], value);
    if (op === "remove") Array.isArray(at) ? at.splice(last, 1) : delete at[last];
    else if (op === "add" && Array.isArray(at)) at.splice(last, 0, to);
    else Object.defineProperty(at, last, { value: to, enumerable: true, configurable: true, writable: true });
  }
  return value;
}

function undiffed(before, diff) {
  const a = before.split(/(?<=\n)/);
  const lines = diff.split(/(?<=\n)/);
  let out = "";
  let at = 0;
  lines.forEach((line, i) => {
    if (line[0] === "\\") return;
    const span = /^@@ -(\d+)(?:,(\d+))? /.exec(line);
    const body = lines[i + 1]?.[0] === "\\" ? line.slice(1, -1) : line.slice(1);
    if (span) for (const to = span[1] - (span[2] === "0" ? 0 : 1); at < to; at++) out += a[at];
    else if (line[0] === "+") out += body;
    else {
      assert.equal(a[at++], body);
      if (line[0] === " ") out += body;
    }
  });
  return out + a.slice(at).join("");
}

let seed = 7;
const random = (n) => (seed = (seed * 48271) % 2147483647) % n;
const pick = (list) => list[random(list.length)];
const value = (depth) =>
  [
    () => random(9),
    () => pick(["", "a", "lines\nof text", null, true]),
    () => Array.from({ length: random(6) }, () => value(depth - 1)),
    () =>
      Object.fromEntries(
        Array.from({ length: random(5) }, () => [pick(["a", "b", "a/b", "~", "", "__proto__"]), value(depth - 1)]),
      ),
  ][random(depth ? 4 : 2)]();
const changed = (given) => {
  if (!given || typeof given !== "object" || !random(4)) return value(2);
  const copy = structuredClone(given);
  const names = Object.keys(copy);
  if (Array.isArray(copy))
    copy.splice(random(copy.length + 1), random(2), ...Array.from({ length: random(3) }, () => value(2)));
  else if (names.length) copy[pick(names)] = changed(copy[pick(names)]);
  return copy;
};

test("a delta makes the text before the text after, and is shorter", () => {
  const kinds = { patch: 0, diff: 0, none: 0 };
  for (let i = 0; i < 3000; i++) {
    const items = Array.from({ length: random(30) }, () => value(3));
    const next = random(8) ? items.map((item) => (random(9) ? item : changed(item))) : [changed(items)].flat();
    const [before, after] = [items, next].map((list) =>
      random(2) ? JSON.stringify(list) : list.map((item) => JSON.stringify(item)).join("\n") + pick(["", "\n"]),
    );
    const delta = difference(before, after);
    kinds[delta ? Object.keys(delta)[0] : "none"]++;
    if (!delta) continue;
    assert.equal(Object.keys(delta).length, 1);
    const size = delta.diff?.length ?? JSON.stringify(delta.patch).length;
    assert.ok(size < after.length, `${size} of ${after.length}`);
    if (delta.diff) assert.equal(undiffed(before, delta.diff), after);
    else assert.deepEqual(patched(JSON.parse(before), JSON.parse(JSON.stringify(delta.patch))), JSON.parse(after));
  }
  assert.ok(kinds.patch > 300 && kinds.diff > 300 && kinds.none > 300, JSON.stringify(kinds));
});

const rows = (from, join) =>
  `[${join}${Array.from({ length: 40 }, (_, i) => `["${from + i}","a message"]`).join(`,${join}`)}${join}]`;
const deep = (leaf) => `${"[".repeat(90)}${leaf}${"]".repeat(90)}`;
for (const [name, before, after, want] of [
  ["one cell", rows(0, ""), rows(0, "").replace('"5"', '"five"'), /"path":"\/5\/0","value":"five"/],
  ["a log that moves by one row", rows(0, "\n"), rows(1, "\n"), /"add","path":"\/40",.*"remove","path":"\/0"/],
  ["the same on one line", rows(0, ""), rows(1, ""), /"op":"remove","path":"\/0"/],
  ["two lines far apart", `a\n${"x\n".repeat(99)}b`, `A\n${"x\n".repeat(99)}B`, /@@ -1 \+1 @@.*@@ -101 \+101 @@/],
  ["nothing in common", "abc\ndef", "ghi\njkl", /undefined/],
  ["JSON that becomes text", '{"a":1}', "none", /undefined/],
  [
    "a number of more digits than a double has",
    '{"a":"long long long","n":1}',
    '{"a":"long long long","n":12345678901234567}',
    /undefined/,
  ],
  ["nested deeply", deep('"a long text"'), deep("1"), /undefined/],
  ["no text before", undefined, "text", /undefined/],
])
  test(`the difference of ${name}`, () => assert.match(`${JSON.stringify(difference(before, after))}`, want));

// Without its bound this does not end.
test("the difference of large texts that differ everywhere", () => {
  const text = (by) => Array.from({ length: 50_000 }, (_, i) => `${(i * by) % 9973}${by}`);
  assert.equal(difference(JSON.stringify(text(7)), JSON.stringify(text(11))), undefined);
  assert.equal(difference(text(7).join("\n"), text(11).join("\n")), undefined);
});
