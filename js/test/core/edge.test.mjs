/**
 * The edge by itself, with a core of each build: text through linear memory, re-entry, limits, and what becomes of a
 * core that fails.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { builds, origin, page as pageOf, sleep } from "./harness.mjs";

/** A test of each build, or of some: `run` is given what starts a page with it, and the build. */
const each = (name, run, of = builds) => {
  for (const build of of)
    test(`${name} (${build.name})`, () => run((reads, options) => pageOf(reads, options, build), build));
};

const uri = `${origin}/a`;
const request = (id, method, params) => JSON.stringify({ jsonrpc: "2.0", id, method, params });
const initialize = request(0, "initialize", {
  protocolVersion: "2025-11-25",
  capabilities: {},
  clientInfo: { name: "c", version: "1" },
});
const sent = (p, port) =>
  p.log.filter(([what, to]) => what === "send" && to === port).map(([, , text]) => JSON.parse(text));

each("text of every kind crosses the edge unharmed", async (page) => {
  const p = await page({ [uri]: () => [{ uri, text: "x" }] });
  const name = 'é😀\u2028"\\\n\t\u0001 end';
  p.core.register(JSON.stringify({ uri, name }));
  p.core.open(1);
  p.core.receive(1, initialize);
  p.core.receive(1, request("ü\u0000", "resources/list"));
  const [, answer] = sent(p, 1);
  assert.equal(answer.id, "ü\u0000");
  assert.equal(answer.result.resources[0].name, name);
});

each("a lone surrogate from JavaScript becomes U+FFFD, not a dead core", async (page) => {
  const p = await page();
  p.core.register(JSON.stringify({ uri, name: "n" }).replace('"n"', '"\ud800"'));
  p.core.open(1);
  p.core.receive(1, initialize);
  p.core.receive(1, request(1, "resources/list"));
  assert.equal(sent(p, 1)[1].result.resources[0].name, "\ufffd");
});

each("memory may grow at any time", async (page) => {
  const p = await page({}, {});
  p.core.open(1);
  p.core.receive(1, initialize);
  // Descriptors of 100 KB each, until the memory must have grown several times.
  const description = "d".repeat(100_000);
  for (let i = 0; i < 300; i++) p.core.register(JSON.stringify({ uri: `${origin}/${i}`, name: "n", description }));
  let listed = 0;
  for (let cursor, id = 1; ; id++) {
    p.core.receive(1, request(id, "resources/list", cursor ? { cursor } : {}));
    const { resources, nextCursor } = sent(p, 1).at(-1).result;
    assert.ok(resources.every((r) => r.description === description));
    listed += resources.length;
    if (!(cursor = nextCursor)) break;
  }
  assert.equal(listed, 300);
});

each("a message above the limit is answered under its id without being copied in", async (page) => {
  const p = await page();
  p.core.open(1);
  p.core.receive(1, request(7, "ping", { padding: "x".repeat(2 << 20) }));
  p.core.receive(1, request(8, "ping", { padding: "é".repeat(700_000) })); // fits in UTF-16 units, not in bytes
  p.core.receive(1, request(9, "ping", {}));
  assert.deepEqual(
    sent(p, 1).map((m) => [m.id, m.error?.data.reason]),
    [
      [7, "message_size"],
      [8, "message_size"],
      [9, undefined],
    ],
  );
});

each("the page may call the core from within the core's calls", async (page) => {
  const p = await page();
  p.core.register(JSON.stringify({ uri, name: "n" }));
  p.core.open(1);
  p.core.receive(1, initialize);
  p.core.receive(1, request(1, "resources/subscribe", { uri }));
  // Each update makes another change, a hundred deep: queued, not nested.
  const push = p.log.push.bind(p.log);
  let depth = 0;
  p.log.push = (entry) => {
    push(entry);
    if (entry[0] === "send" && depth < 100) {
      depth++;
      p.core.touch(uri, 1);
      p.core.receive(1, request(100 + depth, "ping"));
    }
    return 0;
  };
  p.core.receive(1, request(2, "ping"));
  await sleep(150);
  const ids = sent(p, 1)
    .map((m) => m.id)
    .filter((id) => id > 100);
  assert.deepEqual(
    ids,
    Array.from({ length: 100 }, (_, i) => 101 + i),
  );
});

each("timers: the trailing update comes by itself", async (page) => {
  const p = await page();
  p.core.register(JSON.stringify({ uri, name: "n" }));
  p.core.open(1);
  p.core.receive(1, initialize);
  p.core.receive(1, request(1, "resources/subscribe", { uri }));
  const updates = () => sent(p, 1).filter((m) => m.method === "notifications/resources/updated").length;
  // Its clock stands still meanwhile: one more is announced for each 100 ms that a busy machine takes.
  const { now } = performance;
  const at = performance.now();
  performance.now = () => at;
  try {
    for (let i = 0; i < 10_000; i++) p.core.touch(uri, 1);
  } finally {
    performance.now = now;
  }
  assert.equal(updates(), 3, "as many as the engine announces at once");
  while (updates() < 4) await sleep(10);
  await sleep(200);
  assert.equal(updates(), 4);
});

each("tools of the page are carried: listed, called, and their change announced", async (page) => {
  const p = await page({}, { tools: true });
  const tool = { name: "greet", description: "Greets", inputSchema: { type: "object" } };
  p.core.open(1);
  p.core.receive(1, initialize);
  p.core.setTools(JSON.stringify([tool]));
  p.core.receive(1, request(1, "tools/list"));
  p.core.receive(1, request(2, "tools/call", { name: "greet", arguments: { who: "é" } }));
  p.core.setTools("[{}]");
  const [{ result }, changed, listed, called] = sent(p, 1);
  assert.deepEqual(result.capabilities.tools, { listChanged: true });
  assert.equal(changed.method, "notifications/tools/list_changed");
  assert.deepEqual(listed.result.tools, [tool]);
  assert.deepEqual(called.result, { content: [{ type: "text", text: 'greet {"who":"é"}' }] });
  assert.ok(p.log.some(([what, text]) => what === "report" && text.includes("tools refused")));
});

each("what the engine refuses is reported, and nothing else suffers", async (page) => {
  const p = await page();
  p.core.register(JSON.stringify({ uri: "https://evil.example/x", name: "n" }));
  p.core.register("{");
  p.core.register(JSON.stringify({ uri, name: "n" }));
  p.core.register(JSON.stringify({ uri, name: "n" }));
  assert.deepEqual(
    p.log.map(([what]) => what),
    ["report", "report", "report"],
  );
  assert.equal(p.dead, undefined);
});

each("a panic is the core's death: it says so once, and is never called again", async (page, { recovers }) => {
  const instantiate = WebAssembly.instantiate;
  // A length beyond the buffer, as a bug of the edge might give it.
  WebAssembly.instantiate = async (...args) => {
    const instance = await instantiate(...args);
    const exports = { ...instance.exports, touch: (now) => instance.exports.touch(now, 1 << 29) };
    return Object.create(instance, { exports: { value: exports } });
  };
  const p = await page();
  WebAssembly.instantiate = instantiate;
  p.core.open(1);
  p.core.receive(1, initialize);
  p.core.touch(uri, 1);
  assert.match(p.dead, recovers ? /internal error/ : /RuntimeError: unreachable/);
  const reported = p.log.filter(([what]) => what === "report");
  assert.equal(reported.length, recovers ? 1 : 0, "TinyGo's text is on the console alone");
  if (recovers) assert.match(reported[0][1], /core stopped: .*slice bounds out of range/);
  const before = p.log.length;
  p.core.receive(1, request(1, "ping"));
  await sleep(50);
  assert.equal(p.log.length, before);
});

each("an exception that leaves an export is death", async (page) => {
  const p = await page();
  p.core.open(1);
  p.core.receive(1, initialize);
  p.core.register(JSON.stringify({ uri, name: "n" }));
  p.core.receive(1, request(1, "resources/subscribe", { uri }));
  // The page's clock throws from within the call, as an engine at the end of its stack does.
  const now = performance.now;
  performance.now = () => {
    throw new RangeError("Maximum call stack size exceeded");
  };
  try {
    p.core.touch(uri, 1);
  } finally {
    performance.now = now;
  }
  assert.match(p.dead, /RangeError/);
});

const exits = async (page) => {
  let imports;
  const instantiate = WebAssembly.instantiate;
  WebAssembly.instantiate = async (module, given) => instantiate(module, (imports = given));
  const p = await page();
  WebAssembly.instantiate = instantiate;
  imports.gojs["runtime.wasmExit"](0);
  assert.match(p.dead, /exited with status/);
};
// By the import with which Go's runtime ends its program; TinyGo's has none.
each(
  "a core whose program exits is dead",
  exits,
  builds.filter(({ recovers }) => recovers),
);

each("a wasm that cannot be fetched says which and what to do", async (page) => {
  await assert.rejects(
    page({}, { wasm: "http://127.0.0.1:9/pagewire.wasm" }),
    /could not fetch http:\/\/127\.0\.0\.1:9\/pagewire\.wasm/,
  );
});

each("ports above the limit are closed with a reason", async (page) => {
  const p = await page();
  for (let i = 1; i <= 1025; i++) p.core.open(i);
  assert.deepEqual(p.log, [["closed", 1025, "bridge: too many ports: the limit is 1024"]]);
});

each("a clock that jumps, as a sleeping laptop's does, does not stop the garbage collector", async (page) => {
  let instance;
  const instantiate = WebAssembly.instantiate;
  WebAssembly.instantiate = async (...args) => (instance = await instantiate(...args));
  const p = await page();
  WebAssembly.instantiate = instantiate;
  const size = () => (instance.exports.mem ?? instance.exports.memory).buffer.byteLength;
  const now = performance.now;
  let ahead = 0;
  performance.now = () => now.call(performance) + (ahead += Math.random() < 0.3 ? 2000 : 0);
  try {
    const descriptor = JSON.stringify({ uri, name: "n", description: "d".repeat(100_000) });
    const cycle = () => {
      p.core.register(descriptor);
      p.core.unregister(uri);
    };
    for (let i = 0; i < 100; i++) cycle();
    const before = size();
    for (let i = 0; i < 900; i++) cycle();
    assert.ok(size() <= before + (16 << 20), `grew from ${before} to ${size()}`);
  } finally {
    p.core.stop(); // its timer is set by the clock that ran ahead
    performance.now = now;
  }
});

each("nothing leaks: sessions that come and go leave the memory as it was", async (page) => {
  let instance;
  const instantiate = WebAssembly.instantiate;
  WebAssembly.instantiate = async (...args) => (instance = await instantiate(...args));
  const p = await page();
  WebAssembly.instantiate = instantiate;
  p.core.register(JSON.stringify({ uri, name: "n" }));
  const session = (port) => {
    p.core.open(port);
    p.core.receive(port, initialize);
    for (let i = 0; i < 20; i++) p.core.receive(port, request(i + 1, "resources/subscribe", { uri }));
    p.core.touch(uri, 1);
    p.core.close(port);
    p.log.length = 0;
  };
  const size = () => (instance.exports.mem ?? instance.exports.memory).buffer.byteLength;
  let port = 0;
  while (port < 2000) session(++port);
  const before = size();
  while (port < 12_000) session(++port);
  assert.ok(size() <= before + (1 << 20), `grew from ${before} to ${size()}`);
});
