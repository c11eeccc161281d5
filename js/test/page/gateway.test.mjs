// A page at a gateway of its service: its tickets and its connections.
import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { beforeEach, mock, test } from "node:test";

mock.timers.enable({ apis: ["setTimeout", "Date"] }); // before the page layer takes them
mock.method(console, "error", () => {});

let sockets = [];
class Socket extends EventTarget {
  said = [];
  constructor() {
    super();
    sockets.push(this);
  }
  send(text) {
    this.said.push(JSON.parse(text));
  }
  close() {
    this.closed = true;
  }
  open() {
    this.dispatchEvent(new Event("open"));
  }
  hear(said) {
    this.dispatchEvent(new MessageEvent("message", { data: JSON.stringify(said) }));
  }
  end() {
    this.dispatchEvent(new Event("close"));
  }
  tickets() {
    return this.said.filter(({ type }) => type === "pagewire:ticket").map(({ ticket }) => ticket);
  }
}

/** The requests to the service that have no answer yet. */
let asked = [];
const fetch = (_url, { signal }) =>
  new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason));
    asked.push({
      answer: (text) => resolve({ ok: true, text: async () => text }),
      fail: () => resolve({ ok: false, status: 503 }),
    });
  });

const target = Object.assign(new EventTarget(), { title: "", hasFocus: () => true });
Object.assign(target, { baseURI: "https://app.test/", head: undefined, forms: [] });
class Observer {
  observe() {}
  disconnect() {}
}
const window = new EventTarget();
Object.assign(window, { parent: window, top: window });
Object.assign(globalThis, {
  WebSocket: Socket,
  MutationObserver: Observer,
  fetch,
  document: target,
  Document: { prototype: target },
  window,
});
globalThis.location = { href: "https://app.test/", hostname: "app.test" };
const { arrive, gateway, kept, shared } = await import("../../../dist/test/page.mjs");

const turn = () => new Promise((done) => setImmediate(done));
const life = 100; // seconds
const ticket = (name) => `${name}.${btoa(JSON.stringify({ exp: Date.now() / 1000 + life })).replace(/=+$/, "")}.x`;
const after = async (seconds) => {
  mock.timers.tick(seconds * 1000);
  await turn();
};
const answer = async (name) => {
  asked.shift().answer(ticket(name));
  await turn();
};

const source = { dead() {}, closed() {}, send() {} };
function open() {
  const page = gateway(
    { settings: { origin: "https://app.test", ticket: "/ticket" }, emit() {} },
    { id: "e" },
    { attach: () => ({ source, adopt() {} }) },
  );
  page.dial("wss://live.test");
  return page;
}

let page;
beforeEach(async () => {
  page?.shutDown();
  sockets = [];
  asked = [];
  page = open();
  await answer("first");
  sockets[0].open();
});

const names = (socket) => socket.tickets().map((text) => text.split(".")[0]);

test("another ticket is said before the first ends", async () => {
  await after(life * 0.7);
  await answer("second");
  assert.deepEqual(names(sockets[0]), ["first", "second"]);
});

test("a page whose connection ends while a ticket is fetched connects anew with that", async () => {
  await after(life * 0.7);
  sockets[0].end();
  await turn();
  await answer("second");
  assert.equal(sockets.length, 2);
  sockets[1].open();
  assert.deepEqual([names(sockets[0]), names(sockets[1])], [["first"], ["second"]]);
});

test("a page that is sent elsewhere while a ticket is fetched goes", async () => {
  await after(life * 0.7);
  sockets[0].hear({ type: "pagewire:elsewhere" });
  await after(2);
  await answer("second");
  assert.equal(sockets.length, 2);
  assert.equal(sockets[0].closed, true);
  await after(2);
  assert.equal(sockets.length, 2);
});

test("a ticket that could not be had is fetched again, more and more rarely", async () => {
  await after(life * 0.7);
  for (const pause of [2, 4, 8, 15, 15]) {
    asked.shift().fail();
    await turn();
    await after(pause * 0.7);
    assert.equal(asked.length, 0);
    await after(pause * 0.6);
    assert.equal(asked.length, 1);
  }
  await answer("second");
  assert.deepEqual(names(sockets[0]), ["first", "second"]);
  assert.equal(sockets.length, 1);
});

test("a service that does not answer is asked again", async () => {
  await after(life * 0.7);
  asked = [];
  await after(10);
  await after(3);
  await answer("second");
  assert.deepEqual(names(sockets[0]), ["first", "second"]);
});

/** Opens 399 more pages, so that 400 have had a connection for a while. */
async function openMany() {
  const pages = Array.from({ length: 399 }, open);
  await turn();
  while (asked.length) await answer("first");
  for (const socket of sockets.slice(1)) socket.open();
  await after(3);
  return pages;
}

/**
 * The 400 pages ask for a ticket within so many seconds, and in each tenth of the time at least 1
 * and at most 79.
 */
async function spread(seconds) {
  const asking = [];
  let all = 0;
  for (let i = 0; i < 10; i++) {
    await after(seconds / 10);
    all += asked.length;
    asking.push(asked.length);
    asked = [];
  }
  const even = asking.every((n) => n > 0 && n < 80);
  assert.ok(even, asking.join(" "));
  assert.equal(all, 400);
}

test("the pages of a node that has died dial over 2 s", async () => {
  const pages = await openMany();
  for (const socket of sockets) socket.end();
  await spread(2);
  for (const one of pages) one.shutDown();
});

test("pages that are refused a ticket ask again over 7.5 s", async () => {
  const pages = await openMany();
  for (const socket of sockets) socket.end();
  await after(2);
  for (const one of asked.splice(0)) one.fail();
  await turn();
  await after(11.25);
  assert.equal(asked.length, 0);
  await spread(7.5);
  for (const one of pages) one.shutDown();
});

/** A page at a gateway. Its model context is a polyfill's plain object. */
async function withPlainContext(getTools) {
  const make = (name) => ({
    registerTool() {},
    executeTool() {},
    getTools: getTools === undefined ? async () => [{ name, window }] : getTools,
  });
  const settings = { __proto__: null, origin: "https://app.test" };
  const place = { context: make("first"), make };
  const early = { kept, shared, settings, emit() {}, tooling: () => place.context, projected: () => false };
  place.early = early;
  place.late = arrive(early);
  place.late.warmUp("wss://live.test");
  sockets.at(-1).open();
  await turn();
  return place;
}

test("a page whose model context is no EventTarget leaves its gateway at uninstall()", async () => {
  const { late } = await withPlainContext();
  const socket = sockets.at(-1);
  late.shutDown("pagewire was uninstalled");
  assert.equal(socket.closed, true);
  socket.end();
  await after(20);
  assert.equal(sockets.at(-1), socket);
});

test("a model context that is no EventTarget may be replaced by another one", async () => {
  const place = await withPlainContext();
  place.context = place.make("second");
  sockets.at(-1).end();
  sockets.at(-1).open();
  await turn();
  assert.match(JSON.stringify(sockets.at(-1).said), /second/);
  place.late.shutDown("");
});

test("an event that a script has made does not take a page from its gateway", async () => {
  window.dispatchEvent(new Event("pagehide"));
  assert.notEqual(sockets[0].closed, true);
});

test("a call of registerTool that the context refused does not change the hints that it has", async () => {
  const annotations = { readOnlyHint: true, untrustedContentHint: true };
  shared.annotated.set("pay", { readOnlyHint: false, untrustedContentHint: false, consequentialHint: true });
  const { late } = await withPlainContext(async () => [{ name: "pay", window, annotations }]);
  try {
    const [, tools] = sockets
      .at(-1)
      .said.flat()
      .find(([call]) => call === "setTools");
    const [pay] = JSON.parse(tools);
    assert.deepEqual(pay.annotations, { readOnlyHint: true });
    assert.deepEqual(pay._meta["pagewire/hints"], { consequentialHint: true, untrustedContentHint: true });
  } finally {
    shared.annotated.delete("pay");
    late.shutDown("");
  }
});

test("a document gives each core the same id, which no other document has and no tool shows", async () => {
  const idOf = (frame) => frame[0][3].epoch;
  const ids = new Set();
  for (let i = 0; i < 20; i++) {
    const { late, early } = await withPlainContext();
    const frames = [];
    await late.warmUp((frame) => frames.push(JSON.parse(frame)));
    const id = idOf(frames[0]);
    assert.equal(idOf(sockets.at(-1).said[0]), id);
    sockets.at(-1).end();
    await after(20); // it connects anew
    sockets.at(-1).open();
    assert.equal(idOf(sockets.at(-1).said[0]), id);
    // The tools of agents in the page show the epoch of revisions.
    assert.ok(id.length <= 64 && id.replace(early.settings.epoch, "").replaceAll("-", "").length >= 32, id);
    ids.add(id);
    late.shutDown("");
  }
  assert.equal(ids.size, 20);
});

for (const [name, getTools, seconds] of [
  ["without a context for tools", null, 0],
  ["without tools", async () => [], 0],
  ["whose tools are never listed", () => new Promise(() => {}), 0.6],
  ["with a tool", async () => [{ name: "pay", window }], 0],
])
  test(`a page ${name} lists its tools once, after its resources`, async () => {
    const { late } = await withPlainContext(getTools);
    await after(seconds);
    const lists = sockets
      .at(-1)
      .said.flat()
      .filter(([call]) => call === "setTools");
    assert.deepEqual(
      lists.map(([, tools]) => JSON.parse(tools).map((tool) => tool.name)),
      [name === "with a tool" ? ["pay"] : []],
    );
    late.shutDown("");
  });

test("links that begin one after the other leave no listeners behind", async () => {
  const { late } = await withPlainContext();
  for (let i = 0; i < 3; i++) await late.warmUp(() => {});
  for (const type of ["freeze", "resume"]) assert.ok(getEventListeners(target, type).length <= 1, type);
  late.shutDown("");
});
