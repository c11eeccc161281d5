// The plugin with the real Vite: an error is withdrawn when its file is right, also if Vite's watcher has dropped the
// edit that mended it, as it does within 50 ms of another.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import pagewire from "../../../dist/vite.js";
import { createServer } from "../../node_modules/vite/dist/node/index.js";

const right = "export const a: number = 1;\nimport.meta.hot?.accept();\n";
const wrong = right.replace("1", "");

/** A server of one module, what it sends to pages, and what its watcher is told. */
async function serve(t) {
  const root = await mkdtemp(join(tmpdir(), "pagewire-vite-"));
  const file = join(root, "main.ts");
  writeFileSync(file, right);
  const server = await createServer({
    ...{ root, configFile: false, logLevel: "silent", plugins: [pagewire()] },
    ...{ server: { host: "127.0.0.1", port: 0 }, optimizeDeps: { noDiscovery: true, include: [] } },
  });
  await server.listen();
  t.after(async () => {
    await server.close();
    await rm(root, { recursive: true });
  });
  let changes = 0;
  server.watcher.on("change", () => changes++);
  const get = () => fetch(`http://127.0.0.1:${server.httpServer.address().port}/main.ts`);
  assert.equal((await get()).status, 200);
  const sent = new EventTarget();
  const { send } = server.ws;
  server.ws.send = (message, data) => {
    send(message, data);
    sent.dispatchEvent(new CustomEvent("sent", { detail: [message, data] }));
  };
  /** Waits for a message to pages. */
  const sends = (is) => new Promise((done) => sent.addEventListener("sent", ({ detail }) => is(...detail) && done()));
  return { server, file, get, sends, changes: () => changes };
}
const isError = ({ type }) => type === "error";
const isUpdate = ({ type }) => type === "update";
const isMended = (message, errors) => message === "pagewire:errors" && errors.length === 0;

for (const dropped of [true, false])
  test(`an error is mended ${dropped ? "by an edit that the watcher drops" : "at once"}`, async (t) => {
    const { server, file, get, sends } = await serve(t);
    const updated = sends(isUpdate);
    writeFileSync(file, wrong);
    await updated;
    const mended = sends(isError).then(() => {
      if (dropped) server.watcher.unwatch(file);
      writeFileSync(file, right);
      return Promise.all([sends(isMended), sends(isUpdate)]); // the page's overlay goes with an update
    });
    assert.equal((await get()).status, 500);
    await mended;
    assert.equal((await get()).status, 200);
  });

test("an error that only the page's request has does not come for ever", async (t) => {
  const { server, file, sends, changes } = await serve(t);
  const error = { type: "error", err: { message: "on the server", id: file } };
  let updates = 0;
  for (let round = 0; round < 3; round++) {
    const mended = sends(isMended);
    const updated = round === 0 && sends(isUpdate).then(() => updates++);
    server.ws.send(error);
    await Promise.all([mended, updated]);
  }
  assert.deepEqual([changes(), updates], [1, 1]);
});

test("a build and tests of Vitest are without the plugin", () => {
  const applies = (command) => pagewire().apply({}, { command });
  assert.deepEqual([applies("serve"), applies("build")], [true, false]);
  process.env.VITEST = "true";
  assert.equal(applies("serve"), false);
  delete process.env.VITEST;
});

test("stores are made where pagewire/dev does nothing", async () => {
  const { share, stores, pinia, queries } = await import("../../../dist/dev.none.js");
  const make = () => 1;
  assert.deepEqual([stores(make), pinia(make), queries(make), share("a", {})()], [make, make, make, undefined]);
});

test("a module in place of a library exports what it has: makers that share, and its default if there is one", async () => {
  const { resolveId, load } = pagewire();
  const made = [];
  globalThis.made = (name) => made.push(name);
  const module = (text) => `data:text/javascript,${encodeURIComponent(text)}`;
  const dev = module(`export const stores = (make, name) => (...args) => (made(name), make(...args));`);
  const last = "export default (state) => state; export const useStore = 1;"; // as in version 4
  for (const [zustand, count] of [
    [`export const create = (state) => state; ${last}`, 2],
    ["export const create = (state) => state;", 1],
  ]) {
    const text = load(resolveId("zustand", "/app/cart.ts"));
    const library = await import(
      module(text.replaceAll('"zustand"', `"${module(zustand)}"`).replace("pagewire/dev", dev))
    );
    made.length = 0;
    for (const make of [library.create, library.default]) assert.equal(make?.(5) ?? 5, 5);
    assert.deepEqual([made.length, made[0]], [count, "cart"]);
    assert.equal(library.useStore, count === 2 ? 1 : undefined);
  }
  delete globalThis.made;
});

test("in a workspace a store library is that of the package that imports it", async () => {
  const { resolveId, load } = pagewire();
  const here = "/repo/packages/ui/src/cart-store.ts";
  const id = resolveId("zustand", `${here}?t=1`, {});
  assert.match(load(id), /"cart-store", "\/repo\/packages\/ui\/src\/cart-store.ts"/);
  const asked = [];
  resolveId.call({ resolve: (...args) => asked.push(args) }, "zustand", `${id}&t=2`, {});
  assert.deepEqual(asked, [["zustand", here, { skipSelf: true }]]);
});
