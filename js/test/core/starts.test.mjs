// The start of the core for agents in the page: with its options, or with an error that says the
// reason.
import assert from "node:assert/strict";
import { test } from "node:test";
import { start } from "../../../dist/pagewire.core.js";
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

test("a core in a worker is asked again if a call may have been withdrawn since its answer", async () => {
  const [posted, started] = [[], []];
  let worker;
  globalThis.Worker = class {
    postMessage(message) {
      posted.push(message);
      if (posted.length > 1) return;
      worker = this;
      setImmediate(() => this.onmessage({ data: ["started", ""] }));
    }
    terminate() {}
  };
  try {
    // A policy that forbids wasm throws the error of bytes that are none.
    const options = { wasm: "data:application/wasm,none", worker: "worker.js" };
    const core = await start({ start: (call) => started.push(call) }, options);
    const answered = async (...withdrawals) => {
      posted.length = 0;
      worker.onmessage({ data: ["start", 7] });
      for (const [name, ...args] of withdrawals) core[name](...args);
      for (let i = 0; i < 9; i++) await turn();
      return posted.slice(withdrawals.length);
    };
    core.starting(7);
    const cancelled = '{"method":"notifications/cancelled"}';
    assert.deepEqual(await answered(["receive", 1, cancelled]), [["starting", 7]]);
    assert.deepEqual(await answered(["close", 1]), [["starting", 7]]);
    assert.deepEqual(started, []);
    assert.deepEqual(await answered(["receive", 1, '{"method":"ping"}']), []);
    assert.deepEqual(started, [7]);
    core.starting(7);
    for (let round = 1; round < 3; round++) await answered(["close", 1]);
    assert.deepEqual(await answered(["close", 1]), [], "withdrawals of others hold a call back for good");
    assert.deepEqual(started, [7, 7]);
  } finally {
    delete globalThis.Worker;
  }
});
