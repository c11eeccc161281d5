/**
 * The starts of the two cores, for agents in the page and for Views: with their options, or with an error that says the
 * reason. And the end of the hosts of Views when their core dies.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { start as startViews } from "../../../dist/test/views.mjs";
import { attachViews } from "../../../dist/views.js";
import { opened, origin, page, recovers, request, sent, serve } from "./harness.mjs";

const turn = () => new Promise((done) => setImmediate(done));
const views = async () => startViews(`${await serve()}/pagewire.views.wasm`);
const defaults = { era: 0, maxSubscriptions: 0, limitCode: 0, updateInterval: 0, readTimeout: 0 };

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

test("the core of Views starts", async () => {
  const core = await views();
  await turn();
  let dead;
  const host = core({ toView() {}, toServer() {}, dead: (reason) => (dead = reason) }, defaults);
  await turn();
  assert.equal(dead, undefined);
  assert.equal(host.open(1), true);
  assert.match(host.capabilities(), /maxSubscriptions/);
});

test("members of Object.prototype are no options of Views", async (t) => {
  const real = globalThis.fetch;
  const fetched = [];
  t.after(() => {
    globalThis.fetch = real;
    delete globalThis.location;
    delete Object.prototype.wasm;
    delete Object.prototype.integrity;
  });
  globalThis.fetch = async (url, { integrity }) => {
    fetched.push([new URL(url).pathname.split("/").at(-1), integrity]);
    throw new TypeError("no network");
  };
  globalThis.location = { href: "https://host.test/" };
  const attach = (options) => attachViews({ connect() {} }, { era: "legacy", send() {} }, options).ready;
  Object.prototype.wasm = "https://evil.test/core.wasm";
  Object.prototype.integrity = "sha256-evil";
  for (const options of [undefined, {}, { wasm: "/own.wasm", integrity: "sha256-own" }])
    await assert.rejects(attach(options), /could not fetch/);
  assert.deepEqual(fetched, [
    ["pagewire.views.wasm", ""],
    ["pagewire.views.wasm", ""],
    ["own.wasm", "sha256-own"],
  ]);
});

test("a panic is the death of all hosts of Views, and no export is called again", async () => {
  let called = 0;
  const counted = (real) => ({
    open: (now, host, id) => real.open(now, host + 1000, id), // a host that does not exist: a panic
    shut: () => ++called,
  });
  const core = await withExports(counted, views);
  const dead = [];
  const [one] = [1, 2].map(() => core({ toView() {}, toServer() {}, dead: (reason) => dead.push(reason) }, defaults));
  assert.equal(one.open(1), false);
  const why = recovers ? /internal error/ : /^the core stopped: panic: .*index out of range$/;
  assert.equal(dead.length, 2);
  for (const reason of dead) assert.match(reason, why);
  one.shut(1);
  assert.equal(called, 0);
});
