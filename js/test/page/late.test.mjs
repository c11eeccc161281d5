// What comes with the first agent: the answers of the page's own tools, the start of the core, and the
// ways to it.
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

const window = new EventTarget();
const posted = [];
Object.assign(globalThis, {
  window,
  postMessage: ({ payload }) => posted.push(payload),
  document: new EventTarget(),
  Document: { prototype: { forms: [] } },
  MutationObserver: class {},
});
globalThis.navigator ??= {};
const { arrive, kept, notify, register, requireOrigin, resourceTools, revisionsOf, shared, unregister } = await import(
  "../../../dist/test/page.mjs"
);

const origin = "https://x.test";
const cart = `${origin}/cart`;
const template = `${origin}/items/{id}`;
const own = (uri) => requireOrigin(uri, origin, "");
const add = (uri, read, members) =>
  register(
    { uri, name: "n", read: typeof read === "function" ? read : () => read, ...members },
    undefined,
    { origin, active: () => true, allowed: true },
    "",
  );
const remove = (uri) => unregister(uri, "");
const say = (uri) => notify(uri, "");
const turn = () => new Promise((done) => setImmediate(done));

const early = {
  emit() {},
  failed: (cause) => cause,
  kept,
  own,
  projected: () => false,
  settings: { origin, freshState: { pay: [cart] } },
  shared,
  // As a core's: each read by way of it gives the URI. One of a URI that ends in "slow" never ends.
  start: async (page) => ({
    ...{ close() {}, open() {}, register() {}, setTools() {}, stop() {}, touch() {}, unregister() {} },
    receive(port, message) {
      const { id, params } = JSON.parse(message);
      const contents = [{ uri: params?.uri, text: params?.uri }];
      if (id === undefined || params?.uri?.endsWith("slow")) return;
      page.send(port, JSON.stringify({ jsonrpc: "2.0", id, result: { contents } }), 0, 0);
    },
  }),
  tooling: () => undefined,
};
const { answer, envelope, guard, serve } = arrive(early);
const read = (uri, since) => answer("resources_read", { uri, since });
const wait = (uris, since) => answer("resources_wait", { uris, since });

afterEach(() => {
  for (const key of [...Map.prototype.keys.call(shared.entries)]) remove(key);
});

test("a resource that was registered again has changed, also if nobody says so", async () => {
  add(cart, "one");
  say(cart);
  const { revision } = await read(cart);
  assert.equal((await read(cart, revision)).unchanged, true);
  remove(cart);
  add(cart, "two");
  const { note, contents } = await read(cart, revision);
  assert.equal(contents?.[0].text, "two", note);
});

test("a resource that was registered again is read until it announces a change", async () => {
  let text = "one";
  add(cart, () => text);
  remove(cart);
  add(cart, () => text);
  const { revision } = await read(cart);
  text = "two";
  assert.equal((await read(cart, revision)).unchanged, undefined);
});

test("who waits for a resource is told that it was registered again, and that it was withdrawn", async () => {
  add(cart, "one");
  for (const again of [true, false]) {
    const waits = wait([cart]);
    const waitsForAll = wait();
    remove(cart);
    if (again) add(cart, "two");
    assert.deepEqual((await waits).updated, [cart]);
    const { listChanged, updated } = await waitsForAll;
    assert.deepEqual([updated, listChanged], [[cart], true]);
  }
});

test("a tool that depends on a resource is not run for who saw the former registration's contents", async () => {
  let ran = 0;
  const pay = (since) => guard("pay", () => ++ran, undefined, [{ pagewire_since: since }]);
  add(cart, "5 EUR");
  say(cart);
  const { revision } = await read(cart);
  remove(cart);
  add(cart, "500 EUR");
  const { content } = await pay(revision);
  assert.equal(ran, 0);
  assert.match(content[0].text, /500 EUR/);
  remove(cart);
  const [gone] = (await pay(revision)).content;
  assert.match(gone.text, /cannot be read now/);
  add(cart, "1 EUR");
  await pay(/"pagewire_since":"(.*?)"/.exec(gone.text)[1]);
  assert.equal(ran, 0);
});

test("a resource that was withdrawn is not registered, whatever its caller knows", async () => {
  const expansion = `${origin}/items/5`;
  const withParameter = `${cart}?page=2`;
  add(cart, "one", { uriSchema: { type: "object" } });
  add(template, "five");
  for (const uri of [cart, withParameter, expansion]) say(uri);
  const given = [];
  for (const uri of [cart, withParameter, expansion]) given.push([uri, (await read(uri)).revision]);
  for (const [uri, revision] of given) assert.equal((await read(uri, revision)).unchanged, true, uri);
  remove(cart);
  remove(template);
  for (const [uri, revision] of given) assert.equal((await read(uri, revision)).isError, true, uri);
});

test("who waits for an expansion, or for a URI with parameters, is told of what answers for it", async () => {
  add(cart, "one", { uriSchema: { type: "object" } });
  add(template, "five");
  for (const [uri, key] of [
    [`${cart}?page=2`, cart],
    [`${origin}/items/5`, template],
  ]) {
    const waits = wait([uri]);
    await turn();
    say(`${origin}/other`);
    say(key);
    assert.deepEqual((await waits).updated, [uri]);
  }
});

test("calls that are aborted before they begin are answered, and read nothing", async () => {
  let reads = 0;
  add(cart, () => {
    reads++;
    return new Promise(() => {});
  });
  const aborted = (name) => answer(name, { uri: cart }, AbortSignal.abort());
  const calls = Array.from({ length: 64 }, (_, i) => aborted(i % 2 ? "resources_wait" : "resources_read"));
  let ended = 0;
  for (const call of calls) call.then(() => ended++);
  await turn();
  assert.equal(ended, 64);
  assert.equal(reads, 0);
  assert.equal((await answer("resources_list", {})).isError, undefined);
});

test("a call that ends while its core starts leaves no session", async () => {
  let start;
  const opening = new Promise((done) => (start = done));
  const closed = [];
  const port = { receive() {}, close: (reason) => closed.push(reason) };
  const tools = resourceTools({ ...early, own }, revisionsOf(shared), {}, () => opening);
  add(template, "five");
  const abort = new AbortController();
  const call = tools.answer("resources_read", { uri: `${origin}/items/5` }, abort.signal);
  abort.abort();
  assert.match((await call).content[0].text, /was aborted/);
  start(port);
  await turn();
  assert.deepEqual(closed, ["the tool's call has ended"]);
});

test("an id whose request was cancelled is free for the window's next client", async () => {
  const say = async (message) => {
    await envelope({ jsonrpc: "2.0", ...message });
    await turn();
  };
  const begin = () => say({ id: 0, method: "initialize" });
  await begin();
  await say({ id: 1, method: "resources/read", params: { uri: `${origin}/slow` } });
  await say({ method: "notifications/cancelled", params: { requestId: 1 } });
  await begin();
  posted.length = 0;
  await say({ id: 1, method: "tools/list" });
  assert.deepEqual(
    posted.map(({ id, error }) => [id, error]),
    [[1, undefined]],
  );
});

test("a core that fails to start at once is started again for the next agent", async () => {
  let starts = 0;
  const { need } = arrive({
    ...early,
    start(page) {
      if (!starts++) throw new Error("blocked");
      return early.start(page);
    },
  });
  await assert.rejects(need(), { message: "blocked" });
  assert.equal(shared.stats.core, "none");
  await need();
  assert.equal(shared.stats.core, "ready");
});

test("an event that a script has made ends no session: the window is still there", async () => {
  const frame = new EventTarget();
  const { port1: port, port2 } = new MessageChannel();
  try {
    const said = [];
    port.onmessage = ({ data }) => said.push(data.id ?? data.type);
    await serve(port2, frame);
    for (const target of [window, frame]) target.dispatchEvent(new Event("pagehide"));
    port.postMessage({ jsonrpc: "2.0", id: 1, method: "ping" });
    while (!said.length) await turn();
    assert.deepEqual(said, [1]);
  } finally {
    port.close();
  }
});
