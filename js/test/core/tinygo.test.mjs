/**
 * Core and Views under a host that behaves as TinyGo's: what it does at the start is not taken for the program's end.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { start as startCore } from "../../../dist/test/tinygo.core.mjs";
import { start as startViews } from "../../../dist/test/tinygo.views.mjs";
import { origin, page, serve } from "./harness.mjs";

const request = (id, method, params) => JSON.stringify({ jsonrpc: "2.0", id, method, params });
const turn = () => new Promise((done) => setImmediate(done));

test("a core goes on when run() has resolved", async () => {
  const uri = `${origin}/a`;
  const p = await page({ [uri]: () => [{ uri, text: "hello" }] }, {}, startCore);
  await turn();
  assert.equal(p.dead, undefined);
  p.core.register(JSON.stringify({ uri, name: "a" }));
  p.core.open(1);
  p.core.receive(
    1,
    request(0, "initialize", {
      protocolVersion: "2025-11-25",
      capabilities: {},
      clientInfo: { name: "c", version: "1" },
    }),
  );
  p.core.receive(1, request(1, "resources/read", { uri }));
  await turn();
  const answer = p.log
    .filter(([what]) => what === "send")
    .map(([, , text]) => JSON.parse(text))
    .find(({ id }) => id === 1);
  assert.deepEqual(answer.result.contents, [{ uri, text: "hello" }]);
});

test("the core of Views goes on when run() has resolved", async () => {
  const core = await startViews(`${await serve()}/pagewire.views.wasm`);
  await turn();
  let dead;
  const options = { era: 0, maxSubscriptions: 0, limitCode: 0, updateInterval: 0, readTimeout: 0, maxViews: 0 };
  const host = core({ toView() {}, toServer() {}, dead: (reason) => (dead = reason) }, options);
  await turn();
  assert.equal(dead, undefined);
  assert.equal(host.open(1), true);
  assert.match(host.capabilities(), /maxSubscriptions/);
});

test("a program that exits is still a dead core", async () => {
  let imports;
  const instantiate = WebAssembly.instantiate;
  WebAssembly.instantiate = async (module, given) => instantiate(module, (imports = given));
  const p = await page({}, {}, startCore);
  WebAssembly.instantiate = instantiate;
  imports.gojs["runtime.wasmExit"](0);
  assert.match(p.dead, /exited with status/);
});
