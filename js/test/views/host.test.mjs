// What no conversation can show of a Host: homes that call back while they are called, and requests
// of any shape.
import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { Host } from "../../../dist/test/views.host.mjs";

const jsonrpc = "2.0";
const uri = "data://a";

/**
 * A Host with Views that record their messages; `toServer` is called with each message to the
 * server.
 */
function makeHost(toServer = () => {}, options = {}) {
  const asked = [];
  const home = {
    now: () => 0,
    wake() {},
    toServer(m) {
      asked.push(m);
      toServer(m);
    },
  };
  const host = new Host("legacy", home, options);
  const open = (hear = () => {}) => {
    const got = [];
    const port = host.open((m) => {
      got.push(m);
      hear(m);
    });
    const ask = (id, method, params) => host.receive(port, { jsonrpc, id, method, params });
    return { port, got, ask };
  };
  const answer = (result, id = asked.at(-1).id) => host.fromServer({ jsonrpc, id, result });
  return { host, open, asked, answer };
}

test("a View that is closed within an answer to another gets none", () => {
  const { host, open, answer } = makeHost();
  const one = open(() => host.close(two.port));
  const two = open();
  for (const view of [one, two]) view.ask(1, "resources/subscribe", { uri });
  answer({ resources: [] });
  assert.deepEqual([one.got.length, two.got.length], [1, 0]);
  const { views, pending, subscriptions } = host.stats();
  assert.deepEqual([views, pending, subscriptions], [1, 0, 0]);
});

test("a document that is replaced within an answer to another View gets nothing of the former one's", () => {
  const { host, open, answer } = makeHost();
  const one = open(() => two.ask(0, "ui/initialize"));
  const two = open();
  for (const view of [one, two]) view.ask(1, "resources/subscribe", { uri });
  answer({ resources: [] });
  assert.deepEqual(two.got, []);
  assert.equal(host.stats().subscriptions, 0);
});

test("a connection that is lost while a message is sent gets no further one, and the next gets its own", () => {
  let sent = 0;
  const { host, open, asked } = makeHost(() => sent++ === 0 && host.connection(null));
  const views = [open(), open()];
  host.learn(uri);
  host.learn("data://b");
  // Both subscribes leave in one call: the list's answer lets them go on.
  host.connection(null);
  views[0].ask(1, "resources/subscribe", { uri });
  views[1].ask(1, "resources/subscribe", { uri: "data://b" });
  host.connection("legacy");
  assert.deepEqual(
    asked.map((m) => m.params.uri),
    [uri],
  );
  host.connection("legacy");
  assert.deepEqual(
    asked.map((m) => m.params.uri),
    [uri, uri, "data://b"],
  );
});

test("a server that answers while it is asked is heard", () => {
  const { host, open } = makeHost(({ id, method }) => {
    if (id) host.fromServer({ jsonrpc, id, result: method === "resources/list" ? { resources: [{ uri }] } : {} });
  });
  const view = open();
  view.ask(1, "resources/subscribe", { uri });
  assert.deepEqual(view.got, [{ jsonrpc, id: 1, result: {} }]);
  host.close(view.port);
  assert.deepEqual([host.stats().upstream, host.stats().unsubscribes], [0, 1]);
});

test("what a home throws is reported, and keeps nothing from others", () => {
  const error = mock.method(console, "error", () => {});
  const { host, open, answer } = makeHost();
  const one = open(() => {
    throw new Error("of the page");
  });
  const two = open();
  for (const view of [one, two]) view.ask(1, "resources/subscribe", { uri });
  answer({ resources: [{ uri }] });
  answer({});
  host.fromServer({ jsonrpc, method: "notifications/resources/updated", params: { uri } });
  assert.deepEqual([one.got.length, two.got.length, error.mock.callCount()], [2, 2, 2]);
  error.mock.restore();
});

const methods = ["subscribe", "unsubscribe", "read", "list", "templates/list"].map((name) => `resources/${name}`);
const ids = ["a".repeat(1024), 0, -1, 1.5];
const noIds = [null, true, {}, [], "a".repeat(1025), 10n, new Date(0)];
const odd = [undefined, null, "text", 7, true, [], {}, { uri: undefined }, { uri: null }, { uri: 7 }, { uri: {} }];

test("each request has one answer, whatever its shape and size", () => {
  const { open } = makeHost(); // the server answers nothing: a valid request waits
  for (const method of methods) {
    const lists = method.endsWith("list");
    const codes = (id, params) => {
      const view = open();
      assert.ok(view.ask(id, method, params));
      assert.ok(view.got.length <= 1);
      assert.ok(view.got.every((m) => m.id === id));
      return view.got[0] ? (view.got[0].error?.code ?? "result") : "waits";
    };
    for (const id of noIds) assert.equal(codes(id, { uri }), -32600, `${method}: ${typeof id}`);
    for (const params of odd) assert.equal(codes(1, params), lists ? "waits" : -32602, `${method}: ${params}`);
    const long = "x".repeat(8192 - 5);
    for (const wrong of ["", "a", "a:", "://x", "1:x", "not a uri", `data:${long}y`])
      assert.equal(codes(1, { uri: wrong }), lists ? "waits" : -32602, `${method}: ${wrong.slice(0, 20)}`);
    assert.notEqual(codes(1, { uri: `data:${long}` }), -32602);
    for (const cursor of [7, {}, "x".repeat(8193)]) if (lists) assert.equal(codes(1, { cursor }), -32602);
    for (const id of ids)
      assert.equal(
        codes(id, { uri, pad: "p".repeat(1_100_000) }),
        method.endsWith("unsubscribe") ? "result" : "waits",
        `${method}: ${id}`,
      );
  }
});

test("a request that has waited too long has an answer", () => {
  let now = 0;
  let due;
  const host = new Host("legacy", { now: () => now, wake: (at) => (due = at), toServer() {} }, { timeout: 1000 });
  const got = [];
  const port = host.open((m) => got.push(m));
  host.learn(uri);
  for (const [id, method] of methods.entries()) host.receive(port, { jsonrpc, id, method, params: { uri } });
  assert.deepEqual(
    got.map(({ id }) => id),
    [0, 1], // the subscribe was given back
  );
  assert.equal(due, 1000);
  now = due;
  host.tick();
  assert.deepEqual(
    got.slice(2).map(({ error }) => error.data.reason),
    ["timeout", "timeout", "timeout"],
  );
  assert.equal(due, undefined);
});
