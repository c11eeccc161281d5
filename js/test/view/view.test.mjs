// watchResource with an App and a host of a few lines, and with a mocked clock. e2e/views_test.go
// tests it in Chromium, with the stock App, and with hosts that come and go.
import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { beforeEach, mock, test } from "node:test";
import { canSubscribe, watchResource } from "../../../dist/view.js";

const uri = "data://a";
const updated = (method = "notifications/resources/updated", of = uri) => ({ method, params: { uri: of } });
const able = { experimental: { "io.github.pagewire/resourceSubscriptions": { maxSubscriptions: 10 } } };

let document;
beforeEach(() => {
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout"] });
  document = globalThis.document = Object.assign(new EventTarget(), { hidden: false });
});

/**
 * An App with a resource whose text is `app.text`. The host can subscribe if `capabilities` say so.
 */
function makeApp(capabilities, more = {}) {
  const app = {
    text: "1",
    calls: [],
    transport: {},
    getHostCapabilities: () => capabilities,
    async readServerResource({ uri }) {
      app.calls.push("read");
      if (app.text === null) throw new Error("gone");
      return { contents: [{ uri, text: app.text }] };
    },
    async request({ method }) {
      app.calls.push(method.slice("resources/".length));
      return {};
    },
    async connect() {},
    hear: (message) => app.transport.onmessage({ jsonrpc: "2.0", ...message }),
    ...more,
  };
  return app;
}

/** Makes a host refuse subscriptions with this error code while `refuses` returns true. */
const refusal = (code, refuses = () => true) => ({
  async request({ method }) {
    this.calls.push(method.slice("resources/".length));
    if (refuses()) throw Object.assign(new Error("refused"), { code });
    return {};
  },
});

/** Runs the callbacks of promises that are settled. */
const settle = async () => {
  for (let i = 0; i < 20; i++) await Promise.resolve();
};
const pass = async (ms) => {
  mock.timers.tick(ms);
  await settle();
};

function watch(app, options) {
  const shown = [];
  const w = watchResource(app, uri, ({ contents }) => shown.push(contents[0].text), options);
  return Object.assign(w, { shown });
}
async function watching(app, options) {
  const w = watch(app, options);
  await settle();
  return w;
}

test("support is recognised in each place where a host may announce it", () => {
  for (const [capabilities, want, context] of [
    [undefined, false],
    [{}, false],
    [{ serverResources: { listChanged: true } }, false],
    [{ serverResources: { subscribe: false } }, false],
    [{ serverResources: { subscribe: true } }, true],
    [able, true],
    [{ resources: { subscribe: true } }, true],
    [{}, true, able.experimental],
  ])
    assert.equal(canSubscribe(capabilities, context), want, JSON.stringify(capabilities));
});

test("where the host can, it subscribes, reads once, and again for each update", async () => {
  const app = makeApp(able);
  const w = await watching(app);
  assert.deepEqual([w.mode, app.calls, w.shown], ["subscribed", ["subscribe", "read"], ["1"]]);
  await pass(20_000);
  assert.equal(app.calls.length, 2, "nothing is asked while nothing changes");
  app.text = "2";
  app.hear(updated());
  await settle();
  app.text = "3";
  app.hear(updated("ui/notifications/resource-updated")); // prefab's and fastmcp's name
  await settle();
  app.hear(updated(undefined, "data://other"));
  app.hear(updated()); // nothing has changed
  await settle();
  assert.deepEqual(
    [app.calls.slice(2), w.shown],
    [
      ["read", "read", "read"],
      ["1", "2", "3"],
    ],
  );
  w.stop();
  assert.deepEqual([w.mode, app.calls.at(-1)], ["stopped", "unsubscribe"]);
  app.hear(updated());
  await pass(100_000);
  assert.equal(app.calls.at(-1), "unsubscribe");
});

test("where it cannot, it polls, and calls back only for what has changed", async () => {
  const app = makeApp({});
  const w = await watching(app, { interval: 1000 });
  for (let i = 0; i < 3; i++) await pass(1000);
  assert.deepEqual([w.mode, app.calls.length, w.shown], ["polling", 4, ["1"]]);
  app.text = "2";
  await pass(1000);
  assert.deepEqual(w.shown, ["1", "2"]);
  for (let i = 0; i < 10; i++) await pass(1000);
  const before = app.calls.length;
  await pass(1000);
  assert.equal(app.calls.length, before, "what does not change is asked for less often");
  await pass(1000);
  assert.equal(app.calls.length, before + 1);
  w.stop();
  await pass(100_000);
  assert.equal(app.calls.length, before + 1);
  assert.ok(!app.calls.includes("unsubscribe"), "nothing is said of a subscription that is none");
});

test("it does not poll while the View is hidden, and does at once when it is shown", async () => {
  const app = makeApp({});
  const w = await watching(app, { interval: 1000 });
  document.hidden = true;
  document.dispatchEvent(new Event("visibilitychange"));
  await pass(60_000);
  assert.equal(app.calls.length, 1);
  app.text = "2";
  document.hidden = false;
  document.dispatchEvent(new Event("visibilitychange"));
  await settle();
  assert.deepEqual(w.shown, ["1", "2"]);
});

test("a read that fails is reported, and tried again later and later", async () => {
  const app = makeApp({}, {});
  app.text = null;
  const errors = [];
  const w = await watching(app, { interval: 1000, onerror: (error) => errors.push(error.message) });
  await pass(1000);
  assert.equal(errors.length, 1, "not after the interval");
  await pass(1000);
  assert.equal(errors.length, 2);
  app.text = "1";
  await pass(4000);
  assert.deepEqual([errors, w.shown], [["gone", "gone"], ["1"]]);
});

test("two reads are never under way, so that no older answer comes last", async () => {
  const answers = [];
  const app = makeApp(able, {
    readServerResource: () => new Promise((done) => answers.push((text) => done({ contents: [{ uri, text }] }))),
  });
  const w = await watching(app);
  app.hear(updated());
  app.hear(updated());
  w.refresh();
  assert.equal(answers.length, 1);
  answers[0]("1");
  await settle();
  assert.equal(answers.length, 2, "one more for all that was told meanwhile");
  answers[1]("2");
  await settle();
  assert.deepEqual([answers.length, w.shown], [2, ["1", "2"]]);
});

test("two watches of a URI are one subscription, and the last one ends it", async () => {
  const app = makeApp(able);
  const one = await watching(app);
  const two = await watching(app);
  assert.deepEqual([app.calls, two.shown], [["subscribe", "read"], ["1"]]);
  one.stop();
  one.stop();
  app.text = "2";
  app.hear(updated());
  await settle();
  assert.deepEqual([one.shown, two.shown, one.mode], [["1"], ["1", "2"], "stopped"]);
  const abort = new AbortController();
  const three = watch(app, { signal: abort.signal });
  two.stop();
  assert.ok(!app.calls.includes("unsubscribe"));
  abort.abort();
  assert.deepEqual([app.calls.at(-1), three.mode], ["unsubscribe", "stopped"]);
  assert.equal(watch(makeApp(able), { signal: AbortSignal.abort() }).mode, "stopped");
});

test("a watch whose signal has aborted asks the host for nothing", async () => {
  for (const capabilities of [able, {}]) {
    const app = makeApp(capabilities);
    const w = watch(app, { signal: AbortSignal.abort() });
    await app.connect(); // which chooses again
    w.refresh();
    await pass(100_000);
    assert.deepEqual([w.mode, app.calls, w.shown], ["stopped", [], []]);
    assert.deepEqual((await watching(app)).shown, ["1"], "another watch of the URI is served");
  }
});

test("a watch that was stopped leaves nothing at its signal, and reads no more", async () => {
  const app = makeApp(able);
  const { signal } = new AbortController();
  const w = await watching(app, { signal });
  assert.equal(getEventListeners(signal, "abort").length, 1);
  w.stop();
  w.refresh();
  await settle();
  assert.deepEqual([getEventListeners(signal, "abort"), app.calls], [[], ["subscribe", "read", "unsubscribe"]]);
});

test("a host that refuses after all is polled; one that does not know the URI yet is asked again when it has been read", async () => {
  const w = await watching(makeApp(able, refusal(-32601)));
  assert.equal(w.mode, "polling");
  w.stop();

  let known = false;
  const later = makeApp(able, {
    ...refusal(-32602, () => !known),
    async readServerResource({ uri }) {
      later.calls.push("read");
      known = true;
      return { contents: [{ uri, text: "1" }] };
    },
  });
  const v = await watching(later);
  assert.deepEqual([v.mode, later.calls], ["subscribed", ["subscribe", "read", "subscribe", "read"]]);
});

test("it waits for an App that is not connected, and chooses anew when one connects again", async () => {
  let capabilities = {};
  const app = makeApp(capabilities, { getHostCapabilities: () => capabilities });
  const { transport } = app;
  app.transport = undefined;
  const w = watch(app);
  await pass(10_000);
  assert.deepEqual([w.mode, app.calls], ["starting", []]);
  app.transport = transport;
  await app.connect();
  await settle();
  assert.equal(w.mode, "polling");
  app.transport = {};
  capabilities = able;
  await app.connect();
  await settle();
  assert.equal(w.mode, "subscribed");
  app.text = "2";
  app.hear(updated());
  await settle();
  assert.deepEqual(w.shown, ["1", "2"]);
});

test("a host that was loaded anew is noticed: by its announcement, and by asking now and then", async () => {
  let context = {};
  const app = makeApp({}, { getHostContext: () => context });
  const w = await watching(app);
  assert.equal(w.mode, "polling");
  context = able.experimental;
  app.hear({ method: "ui/notifications/host-context-changed", params: context });
  await pass(0);
  assert.equal(w.mode, "subscribed");
  const before = app.calls.length;
  await pass(30_000);
  assert.deepEqual(app.calls.slice(before), ["subscribe"], "which costs the server nothing");
  Object.assign(app, refusal(-32601));
  await pass(30_000);
  assert.equal(w.mode, "polling");
});

test("a host that was too busy to answer is asked again, while the View polls", async () => {
  let busy = true;
  const app = makeApp(
    able,
    refusal(-32001, () => busy),
  ); // it timed out
  const w = await watching(app, { interval: 1000 });
  assert.equal(w.mode, "polling");
  await pass(30_000);
  assert.equal(w.mode, "polling");
  assert.equal(app.calls.filter((call) => call === "subscribe").length, 2);
  busy = false;
  await pass(30_000);
  assert.equal(w.mode, "subscribed");
  const before = app.calls.length;
  await pass(29_999);
  assert.equal(app.calls.length, before, "it polls no more");
  await pass(1);
  assert.deepEqual(app.calls.slice(before), ["subscribe"]);
  w.stop();
  assert.equal(app.calls.at(-1), "unsubscribe");
});

test("the teardown ends it without a word", async () => {
  const app = makeApp(able);
  const w = await watching(app);
  app.hear({ id: 7, method: "ui/resource-teardown", params: {} });
  assert.equal(w.mode, "stopped");
  await pass(100_000);
  assert.deepEqual(app.calls, ["subscribe", "read"]);
});

test("a callback that throws harms no other", async () => {
  const thrown = [];
  globalThis.reportError = (error) => thrown.push(error.message);
  const app = makeApp(able);
  app.text = null;
  const fail = (what) => () => {
    throw new Error(what);
  };
  watchResource(app, uri, fail("mine"), { onerror: fail("of a failed read") });
  const w = await watching(app);
  app.text = "1";
  app.hear(updated());
  await settle();
  assert.deepEqual([thrown, w.shown], [["of a failed read", "mine"], ["1"]]);
});

test("the App's own handler hears every message, and first", async () => {
  const heard = [];
  const app = makeApp(able, { transport: { onmessage: (message) => heard.push(message.method ?? "answer") } });
  await watching(app);
  app.hear(updated());
  app.hear({ id: 1, result: {} });
  assert.deepEqual(heard, ["notifications/resources/updated", "answer"]);
});
