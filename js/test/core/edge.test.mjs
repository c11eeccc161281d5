/**
 * The edge by itself, with the built core: text through linear memory, re-entry, limits, and the
 * death of a core that fails.
 */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { initialize, interval, opened, origin, page, recovers, request, sent, sleep, wasm } from "./harness.mjs";

const uri = `${origin}/a`;

test("text of every kind crosses the edge unharmed", async () => {
  const p = await page({ [uri]: () => [{ uri, text: "x" }] });
  const name = 'é😀\u2028"\\\n\t\u0001 end';
  p.core.register(JSON.stringify({ uri, name }));
  opened(p);
  p.core.receive(1, request("ü\u0000", "resources/list"));
  const [, answer] = sent(p);
  assert.equal(answer.id, "ü\u0000");
  assert.equal(answer.result.resources[0].name, name);
});

test("a lone surrogate from JavaScript becomes U+FFFD, not a dead core", async () => {
  const p = await page();
  p.core.register(JSON.stringify({ uri, name: "n" }).replace('"n"', '"\ud800"'));
  opened(p);
  p.core.receive(1, request(1, "resources/list"));
  assert.equal(sent(p)[1].result.resources[0].name, "\ufffd");
});

test("memory may grow at any time", async () => {
  const p = opened(await page({}, {}));
  // Descriptors of 100 KB each, until the memory must have grown several times.
  const description = "d".repeat(100_000);
  for (let i = 0; i < 300; i++) p.core.register(JSON.stringify({ uri: `${origin}/${i}`, name: "n", description }));
  let listed = 0;
  for (let cursor, id = 1; ; id++) {
    p.core.receive(1, request(id, "resources/list", cursor ? { cursor } : {}));
    const { resources, nextCursor } = sent(p).at(-1).result;
    assert.ok(resources.every((r) => r.description === description));
    listed += resources.length;
    if (!(cursor = nextCursor)) break;
  }
  assert.equal(listed, 300);
});

test("a message above the limit is answered under its id without being copied in", async () => {
  const p = await page();
  p.core.open(1);
  p.core.receive(1, request(7, "ping", { padding: "x".repeat(2 << 20) }));
  p.core.receive(1, request(8, "ping", { padding: "é".repeat(700_000) })); // fits in UTF-16 units, not in bytes
  p.core.receive(1, request(9, "ping", {}));
  assert.deepEqual(
    sent(p).map((m) => [m.id, m.error?.data.reason]),
    [
      [7, "message_size"],
      [8, "message_size"],
      [9, undefined],
    ],
  );
});

test("the page may call the core from within the core's calls", async () => {
  const p = await page();
  p.core.register(JSON.stringify({ uri, name: "n" }));
  opened(p);
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
  while (!sent(p).some((m) => m.id === 200)) await sleep(1);
  await interval(p);
  const ids = sent(p)
    .map((m) => m.id)
    .filter((id) => id > 100);
  assert.deepEqual(
    ids,
    Array.from({ length: 100 }, (_, i) => 101 + i),
  );
});

test("timers: the trailing update comes by itself", async () => {
  const p = await page();
  p.core.register(JSON.stringify({ uri, name: "n" }));
  opened(p);
  p.core.receive(1, request(1, "resources/subscribe", { uri }));
  const updates = () =>
    sent(p).filter((m) => m.method === "notifications/resources/updated" && m.params.uri === uri).length;
  // The clock stands still meanwhile: otherwise one more is announced for each 100 ms that a busy
  // machine takes.
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
  await interval(p);
  assert.equal(updates(), 4);
});

test("tools of the page are carried: listed, called, and their change announced", async () => {
  const p = await page({}, { tools: true });
  const tool = { name: "greet", description: "Greets", inputSchema: { type: "object" } };
  opened(p);
  p.core.setTools(JSON.stringify([tool]));
  p.core.receive(1, request(1, "tools/list"));
  p.core.receive(1, request(2, "tools/call", { name: "greet", arguments: { who: "é" } }));
  p.core.setTools("[{}]");
  // A tool starts behind the messages that wait. The second change is announced 16 ms after the
  // first: on a slow machine that is before the answer.
  const answer = (id) => sent(p).find((m) => m.id === id);
  while (!answer(2)) await sleep(0);
  const [{ result }, changed] = sent(p);
  const [listed, called] = [answer(1), answer(2)];
  assert.deepEqual(result.capabilities.tools, { listChanged: true });
  assert.equal(changed.method, "notifications/tools/list_changed");
  assert.deepEqual(listed.result.tools, [tool]);
  assert.deepEqual(called.result, { content: [{ type: "text", text: 'greet {"who":"é"}' }] });
  assert.ok(p.log.some(([what, text]) => what === "report" && text.includes("tools refused")));
});

test("what the engine refuses is reported, and nothing else suffers", async () => {
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

/**
 * Runs `start` while `make` makes the instances. `make` gets WebAssembly.instantiate and its
 * arguments.
 */
async function instantiating(make, start = page) {
  const instantiate = WebAssembly.instantiate;
  // Node's own fetch makes an instance too.
  WebAssembly.instantiate = (...args) => (args[1]?.pagewire ? make(instantiate, ...args) : instantiate(...args));
  try {
    return await start();
  } finally {
    WebAssembly.instantiate = instantiate;
  }
}

/**
 * The core of a page has died of `cause`: the cause was reported once, and the core is not called
 * again.
 */
async function died(p, cause) {
  assert.match(p.dead ?? "it lives", recovers ? /internal error|exited with status|the core stopped: / : cause);
  const reported = p.log.filter(([what]) => what === "report");
  assert.equal(reported.length, 1);
  assert.match(reported[0][1], cause);
  const before = p.log.length;
  p.core.receive(1, request(1, "ping"));
  // A core that lives does all that the dead one might, later.
  const other = opened(await page());
  other.core.receive(1, request(1, "ping"));
  while (!sent(other).some((m) => m.id === 1)) await sleep(1);
  await interval(other);
  assert.equal(p.log.length, before);
}

test("a panic is the core's death: it says so once, and is never called again", async () => {
  // A length beyond the buffer, as a bug of the edge might give it.
  const p = await instantiating(async (instantiate, ...args) => {
    const instance = await instantiate(...args);
    const exports = { ...instance.exports, touch: (now) => instance.exports.touch(now, 1 << 29) };
    return Object.create(instance, { exports: { value: exports } });
  });
  opened(p);
  p.core.touch(uri, 1);
  await died(
    p,
    recovers ? /core stopped: .*slice bounds out of range/ : /the core stopped: panic: .*slice out of range$/,
  );
});

/** The module with a memory that grows by at most `pages`. */
function capped(module, pages) {
  const text = [...module];
  const number = (at) => {
    let value = 0;
    for (let shift = 0; ; shift += 7, at++) {
      value |= (text[at] & 127) << shift;
      if (text[at] < 128) return [value, at + 1];
    }
  };
  const leb = (value) => (value < 128 ? [value] : [(value & 127) | 128, ...leb(value >> 7)]);
  for (let at = 8; at < text.length; ) {
    const id = text[at];
    const [size, body] = number(at + 1);
    if (id === 5) {
      const [least] = number(body + 2); // after the count, 1, and the flags
      const limits = [1, 1, ...leb(least), ...leb(least + pages)];
      text.splice(at + 1, body - at - 1 + size, ...leb(limits.length), ...limits);
      return new Uint8Array(text);
    }
    at = body + size;
  }
  throw new Error("the module has no memory of its own");
}

// In Go's build the runtime prints its goroutines, and never returns from that.
test("a memory that is full is the core's death", { skip: recovers }, async () => {
  const small = await WebAssembly.compile(capped(await readFile(wasm), 64));
  const p = await instantiating((instantiate, _module, imports) => instantiate(small, imports));
  opened(p);
  const description = "d".repeat(100_000);
  for (let i = 0; i < 300 && !p.dead; i++)
    p.core.register(JSON.stringify({ uri: `${origin}/${i}`, name: "n", description }));
  await died(p, /the core stopped: panic: .*out of memory/);
});

// A dead instance of Go's build keeps a timer of its runtime, which keeps the test's process alive.
test("a stack that is full is the core's death, or leaves it as it was", { skip: recovers }, async () => {
  const p = opened(await page());
  let calls = 0;
  const dive = () => {
    try {
      dive();
    } catch (full) {
      // The stack is full at the deepest frame; each frame above has a little more room for the
      // call.
      if (calls++ < 500 && !p.dead) p.core.receive(1, request(calls, "ping", { padding: "x".repeat(100) }));
      throw full;
    }
  };
  // Node counts its timers, and counts one too many if the stack becomes full in setTimeout: it
  // would never exit.
  const { setTimeout } = globalThis;
  globalThis.setTimeout = queueMicrotask;
  assert.throws(dive, RangeError);
  globalThis.setTimeout = setTimeout;
  p.core.receive(1, request(0, "ping")); // the page learns of the death at the next call, if not at once
  if (p.dead) return await died(p, /RangeError|call stack/);
  p.core.receive(1, request("last", "ping"));
  assert.equal(sent(p).at(-1).id, "last");
});

test("a message that is nested too deeply is refused, and the core goes on", async () => {
  const p = opened(await page());
  const nested = (depth) => JSON.parse("[".repeat(depth) + "]".repeat(depth));
  p.core.receive(1, request(1, "ping", { deep: nested(60) }));
  p.core.receive(1, request(2, "ping", { deep: nested(100) }));
  p.core.receive(1, `{"jsonrpc":"2.0","id":3,"method":"ping","params":{"deep":${"[".repeat(900_000)}`);
  p.core.receive(1, request(4, "ping"));
  assert.deepEqual(
    sent(p)
      .slice(1)
      .map(({ id, error }) => [id, error?.code]),
    [
      [1, undefined],
      [2, -32700],
      [3, -32700],
      [4, undefined],
    ],
  );
});

test("an exception that leaves an export is death", async () => {
  const p = opened(await page());
  p.core.register(JSON.stringify({ uri, name: "n" }));
  p.core.receive(1, request(1, "resources/subscribe", { uri }));
  // The page's clock throws during the call, as an engine at the end of its stack does.
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

// Go's runtime ends its program by this import; TinyGo's has no such import.
test("a core whose program exits is dead", { skip: !recovers }, async () => {
  let imports;
  const p = await instantiating((instantiate, module, given) => instantiate(module, (imports = given)));
  imports.gojs["runtime.wasmExit"](0);
  assert.match(p.dead, /exited with status/);
});

test("a wasm that cannot be fetched says which and what to do", async () => {
  await assert.rejects(
    page({}, { wasm: "http://127.0.0.1:9/pagewire.wasm" }),
    /could not fetch http:\/\/127\.0\.0\.1:9\/pagewire\.wasm/,
  );
});

test("ports above the limit are closed with a reason", async () => {
  const p = await page();
  for (let i = 1; i <= 1025; i++) p.core.open(i);
  assert.deepEqual(p.log, [["closed", 1025, "bridge: too many ports: the limit is 1024"]]);
});

test("a clock that jumps, as a sleeping laptop's does, does not stop the garbage collector", async () => {
  let instance;
  const p = await instantiating(async (instantiate, ...args) => (instance = await instantiate(...args)));
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
    p.core.stop(); // its timer was set by the clock that ran ahead
    performance.now = now;
  }
});

test("nothing leaks: sessions that come and go leave the memory as it was", async () => {
  let instance;
  const p = await instantiating(async (instantiate, ...args) => (instance = await instantiate(...args)));
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
