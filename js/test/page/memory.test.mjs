// What revisions stand for.
import assert from "node:assert/strict";
import { test } from "node:test";

const { memoriesOf, revisionsOf, shared } = await import("../../../dist/test/page.mjs");

const fresh = () => {
  const revisions = revisionsOf(shared);
  return [revisions, memoriesOf(revisions)];
};

test("each caller has its own versions", () => {
  const [revisions, memories] = fresh();
  const read = (since, uri, text) =>
    memories.revision(memories.caller(since).seen, revisions.now(), { uri, revision: revisions.now(), text });
  const first = read(undefined, "a", "1");
  revisions.changed("a");
  const other = read(undefined, "a", "2");
  const both = read(first, "b", "3");
  const texts = (since, uri) => memories.find(memories.caller(since).seen, uri)?.text;
  assert.deepEqual([texts(first, "a"), texts(other, "a"), texts(both, "a"), texts(both, "b")], ["1", "2", "1", "3"]);
  assert.deepEqual(
    memories.news(memories.caller(both).seen).map(({ uri }) => uri),
    ["a"],
  );
  assert.deepEqual(memories.news(memories.caller(other).seen), []);
});

test("a revision of nothing stands for nothing", () => {
  const [{ epoch }, memories] = fresh();
  for (const since of [
    "",
    "x-1-1",
    `${epoch}-9-1`,
    `${epoch}-0-1e9`,
    `${epoch}-0-7`,
    `${epoch}-0`,
    5,
    null,
    {},
    undefined,
  ])
    assert.equal(memories.caller(since).seen, undefined, `${since}`);
});

test("texts are kept within a bound, and then their callers are unknown", () => {
  const [, memories] = fresh();
  const text = "x".repeat(1 << 20);
  let since;
  const all = Array.from({ length: 3000 }, (_, i) => {
    since = memories.revision(memories.caller(since).seen, 0, { uri: `${i}`, revision: 0, text: i < 9 ? text : "" });
    return since;
  });
  const known = all.filter((since) => memories.caller(since).seen);
  assert.ok(known.length > 0 && known.length <= 1000, `${known.length}`);
  let texts = 0;
  for (let seen = memories.caller(since).seen; seen; seen = seen.before) texts++;
  assert.ok(texts <= 1000);
});
