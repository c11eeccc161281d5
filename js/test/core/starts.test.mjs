// The start of the core for agents in the page: with its options, or with an error that says the
// reason.
import assert from "node:assert/strict";
import { test } from "node:test";
import { opened, origin, page, recovers, request, sent } from "./harness.mjs";

const turn = () => new Promise((done) => setImmediate(done));

/** Runs `start` while instances have the exports that `change` returns in place of their own. */
async function withExports(change, start) {
  const instantiate = WebAssembly.instantiate;
  WebAssembly.instantiate = async (...args) => {
    const instance = await instantiate(...args);
    return Object.create(instance, { exports: { value: { ...instance.exports, ...change(instance.exports) } } });
  };
  try {
    return await start();
  } finally {
    WebAssembly.instantiate = instantiate;
  }
}

test("a core has the options that it was given", async () => {
  const uri = `${origin}/a`;
  const options = { name: "Täst", version: "1.2", tools: true };
  const p = await page({ [uri]: () => [{ uri, text: "hello" }] }, options);
  await turn();
  assert.equal(p.dead, undefined);
  p.core.register(JSON.stringify({ uri, name: "a" }));
  opened(p);
  p.core.receive(1, request(1, "resources/read", { uri }));
  await turn();
  const answer = (asked) => sent(p).find(({ id }) => id === asked).result;
  assert.deepEqual(answer(1).contents, [{ uri, text: "hello" }]);
  assert.equal(answer(0).serverInfo.name, "Täst");
  assert.equal(answer(0).serverInfo.version, "1.2");
  assert.ok(answer(0).capabilities.tools);
});

// Go's build does not start by _initialize, and its runtime reports the failures of a start.
test("a trap at the start is an error with its reason", { skip: recovers }, async () => {
  const _initialize = () => {
    throw new WebAssembly.RuntimeError("unreachable");
  };
  await assert.rejects(
    withExports(
      () => ({ _initialize }),
      () => page({}, {}),
    ),
    /pagewire: the core ended: RuntimeError: unreachable/,
  );
});
