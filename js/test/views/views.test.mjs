// attachViews with a bridge and a server of a few lines. e2e/views_test.go tests it in Chromium,
// with frames that come and go, the stock AppBridge and App, and servers of others.
import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { attachViews, EXPERIMENTAL } from "../../../dist/views.js";

const jsonrpc = "2.0";
const uri = "data://a";

/**
 * A server with one resource, which answers at once. `asked` are the methods of the requests to it.
 */
function makeServer(more = {}) {
  const server = {
    era: "legacy",
    asked: [],
    send({ id, method, params }) {
      server.asked.push(method);
      const result = {
        "resources/list": { resources: [{ uri }] },
        "resources/read": { contents: [{ uri, text: "1" }] },
      };
      if (id) server.onmessage({ jsonrpc, id, result: result[method] ?? {} });
      return params;
    },
    update: () => server.onmessage({ jsonrpc, method: "notifications/resources/updated", params: { uri } }),
    ...more,
  };
  return server;
}

/** The official client of a server without subscriptions. */
const without = {
  transport: {},
  async connect() {},
  request: () => assert.fail("it is asked"),
  getServerCapabilities: () => ({ resources: {} }),
};

/**
 * A View, its bridge, and attachViews between them. `got` is what the View gets, `heard` what the
 * bridge does.
 */
async function makeView(server, options) {
  const [got, heard] = [[], []];
  const inner = { start: async () => {}, send: async (m) => void got.push(m), close: async () => inner.onclose() };
  const bridge = {
    async connect(transport) {
      bridge.between = transport;
      transport.onmessage = (m) => heard.push(m);
      await transport.start();
    },
  };
  const views = attachViews(bridge, server, options);
  await bridge.connect(inner);
  let last = 0;
  const ask = (method, params, id = ++last) => {
    inner.onmessage({ jsonrpc, id, method, params });
    return got.find((m) => m.id === id && !m.method);
  };
  const hello = async () => {
    ask("ui/initialize", {}, 0);
    const hostCapabilities = { openLinks: {}, serverResources: { listChanged: true } };
    await bridge.between.send({ jsonrpc, id: 0, result: { hostCapabilities } });
    inner.onmessage({ jsonrpc, method: "ui/notifications/initialized" });
    return got.find(({ id }) => id === 0).result.hostCapabilities;
  };
  return { views, bridge, inner, got, heard, ask, hello };
}

test("the answer to the handshake says that there are subscriptions, and how many", async () => {
  const server = makeServer();
  for (const [options, maxSubscriptions] of [
    [undefined, 10],
    [{ maxSubscriptions: 3 }, 3],
  ]) {
    const view = await makeView(maxSubscriptions === 3 ? makeServer() : server, options);
    await view.views.ready;
    assert.deepEqual(await view.hello(), {
      openLinks: {},
      serverResources: { listChanged: true, subscribe: true, maxSubscriptions },
      experimental: { [EXPERIMENTAL]: { maxSubscriptions } },
    });
  }
  const { hello } = await makeView(without);
  assert.deepEqual(await hello(), { openLinks: {}, serverResources: { listChanged: true } });
});

test("a View whose handshake was with another host is told in the host context", async () => {
  const { ask, got } = await makeView(makeServer());
  assert.deepEqual(ask("resources/subscribe", { uri }).result, {});
  const { method, params } = got[0];
  assert.equal(method, "ui/notifications/host-context-changed");
  assert.deepEqual(params, { [EXPERIMENTAL]: { maxSubscriptions: 10 } });
});

test("a listen of a View is refused, at any moment of its life and whatever its server can", async () => {
  for (const server of [makeServer(), makeServer({ era: "modern" }), without]) {
    const { views, ask, heard, hello } = await makeView(server);
    const refuses = () => {
      for (const method of ["subscriptions/listen", "events/stream", "events/subscribe"])
        assert.equal(ask(method, { notifications: { resourceSubscriptions: [uri] } }).error?.code, -32601, method);
    };
    refuses();
    await hello();
    refuses();
    ask("resources/subscribe", { uri });
    refuses();
    views.teardown();
    refuses();
    assert.ok(!heard.some(({ method }) => /listen|events/.test(method)), "the bridge hears it");
    const asked = server.asked?.filter((method) => method.startsWith("resources/sub") || method.endsWith("listen"));
    assert.ok(!(asked?.length > 1), `the server is asked ${asked}`);
  }
});

test("a closed View announces nothing, answers nothing, and holds nothing", async () => {
  const server = makeServer();
  const { views, inner, got, ask, hello } = await makeView(server);
  await hello();
  ask("resources/subscribe", { uri });
  assert.equal(views.stats().upstream, 1);
  await inner.close();
  assert.ok(views.closed);
  const { upstream, subscriptions, pending, views: open } = views.stats();
  assert.deepEqual([upstream, subscriptions, pending, open], [0, 0, 0, 0]);
  assert.deepEqual(views.capabilities({ openLinks: {} }), { openLinks: {} });
  const before = got.length;
  server.update();
  ask("resources/subscribe", { uri });
  ask("subscriptions/listen", {});
  views.teardown();
  assert.equal(got.length, before);
});

test("an odd or a large subscribe has one answer, which the bridge does not see", async () => {
  const { ask, got, heard, hello, inner } = await makeView(makeServer());
  await hello();
  let n = heard.length;
  for (const method of ["resources/subscribe", "resources/unsubscribe"])
    for (const [id, params] of [
      [1.5, { uri }],
      [null, { uri }],
      [{}, { uri }],
      ["a".repeat(5000), { uri }],
      ["large", { uri, pad: "p".repeat(1_100_000) }],
      ["long", { uri: `data:${"x".repeat(10_000)}` }],
      ["none", undefined],
      ["list", [uri]],
      ["number", { uri: 7 }],
    ]) {
      const before = got.length;
      assert.ok(ask(method, params, id), `${method} ${id}`);
      assert.equal(got.length, before + 1);
    }
  assert.equal(heard.length, n);
  n = got.length;
  inner.onmessage({ jsonrpc, method: "resources/subscribe", params: { uri } });
  assert.equal(got.length, n, "a notification has no answer");
});

test("nothing goes from one server to the Views of another", async () => {
  const servers = [makeServer(), makeServer()];
  const [one, two] = await Promise.all(servers.map((server) => makeView(server)));
  for (const view of [one, two]) {
    await view.hello();
    view.ask("resources/subscribe", { uri });
  }
  const before = two.got.length;
  servers[0].update();
  assert.equal(one.got.at(-1).method, "notifications/resources/updated");
  assert.equal(two.got.length, before);
  assert.deepEqual([one.views.stats().subscriptions, two.views.stats().subscriptions], [1, 1]);
});

test("a View above the limit of a server is left to the bridge, and its host gets the reason", async () => {
  const server = makeServer();
  const all = [];
  for (let i = 0; i < 1024; i++) all.push(await makeView(server));
  const { views, ask, heard } = await makeView(server);
  await assert.rejects(views.ready, /pagewire: the limit of 1024 Views of a server is reached: close those/);
  assert.deepEqual(views.capabilities({}), {});
  assert.equal(ask("resources/subscribe", { uri }), undefined);
  assert.equal(heard.at(-1).method, "resources/subscribe");
  all[0].views.close();
  const { ask: asks } = await makeView(server);
  assert.deepEqual(asks("resources/subscribe", { uri }).result, {});
});

test("a View is learned from after reads that it has cancelled", async () => {
  const { views, inner, bridge, ask } = await makeView(makeServer());
  for (let id = 1; id <= 256; id++) {
    ask("resources/read", { uri: "data://slow" }, id);
    inner.onmessage({ jsonrpc, method: "notifications/cancelled", params: { requestId: id } });
  }
  ask("resources/read", { uri }, 257);
  await bridge.between.send({ jsonrpc, id: 257, result: { contents: [{ uri, text: "1" }] } });
  assert.equal(views.stats().known, 1);
});

test("members of Object.prototype are no options of Views", async (t) => {
  t.after(() => {
    delete Object.prototype.maxSubscriptions;
    delete Object.prototype.limitCode;
  });
  Object.assign(Object.prototype, { maxSubscriptions: 99, limitCode: 7 });
  for (const options of [undefined, {}]) {
    const { views } = await makeView(makeServer(), options);
    assert.equal(views.capabilities({}).serverResources.maxSubscriptions, 10);
  }
  const { views } = await makeView(makeServer(), { maxSubscriptions: 3 });
  assert.equal(views.capabilities({}).serverResources.maxSubscriptions, 3);
});

test("updates that are held back follow by a timer, and a timeout of years is none that fires at once", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const clock = mock.method(performance, "now", () => 1000);
  const delays = mock.method(globalThis, "setTimeout");
  const server = makeServer();
  const { ask, got } = await makeView(server, { timeout: 2 ** 40, reads: "shared" });
  ask("resources/subscribe", { uri });
  const updates = () => got.filter(({ method }) => method === "notifications/resources/updated").length;
  for (let i = 0; i < 5; i++) server.update();
  assert.equal(updates(), 1);
  clock.mock.mockImplementation(() => 1100);
  mock.timers.tick(100);
  assert.equal(updates(), 2);
  server.send = () => {};
  ask("resources/read", { uri });
  assert.equal(delays.mock.calls.at(-1).arguments[1], 2 ** 31 - 1);
  mock.timers.reset();
  clock.mock.restore();
});
