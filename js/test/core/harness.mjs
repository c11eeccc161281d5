/**
 * A core under Node: the built loader with the built wasm, and a page of a few callbacks. They
 * replace the page layer of a browser, so that the edge is tested by itself.
 */
import { createServer } from "node:http";
import { after } from "node:test";
import { readFile } from "node:fs/promises";
import { start } from "../../../dist/pagewire.core.js";

export const origin = "https://x.test";

export const wasm = new URL("../../../dist/pagewire.wasm", import.meta.url);
const module = await WebAssembly.compile(await readFile(wasm));
const byGo = WebAssembly.Module.exports(module).some(({ name }) => name === "mem");

/**
 * Whether the core contains and reports a panic: it does in Go's build. In TinyGo's build a panic
 * is a trap.
 */
export const recovers = byGo;

/**
 * The functions that end the cores of a test file: their timers would keep its process alive for 30
 * s.
 */
const stops = [];
after(() => {
  for (const stop of stops) stop();
});

/** Serves dist/ on loopback: the loader fetches, as in a page. */
export async function serve() {
  const server = createServer(async (request, response) => {
    const body = await readFile(new URL("../../../dist" + request.url, import.meta.url)).catch(() => null);
    response.writeHead(body ? 200 : 404, {
      "content-type": request.url.endsWith(".wasm") ? "application/wasm" : "text/plain",
      connection: "close",
    });
    response.end(body);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  server.unref();
  return `http://127.0.0.1:${server.address().port}`;
}

/**
 * Starts a core. `reads` maps a URI to a function that returns (a promise of) contents. `log`
 * records every call of the page by the core; messages also go to the port's transport.
 */
export async function page(reads = {}, options = {}) {
  const base = await serve();
  const p = {
    log: [],
    held: new Map(),
    ports: new Map(),
    dead: undefined,
    core: undefined,
    /** Opens a port, and returns it as a transport for the official clients. */
    connect() {
      const id = p.ports.size + 1;
      const transport = {
        async start() {},
        async send(message) {
          p.core.receive(id, JSON.stringify(message));
        },
        async close() {
          p.core.close(id);
          transport.onclose?.();
        },
      };
      p.ports.set(id, transport);
      p.core.open(id);
      return transport;
    },
  };
  const callbacks = {
    send(port, message, call, hole) {
      let held = call ? JSON.stringify(p.held.get(call)) : "";
      if (held[0] === "{") held = held.slice(1, -1); // a tool's result without its braces
      const text = message.slice(0, hole) + held + message.slice(hole);
      p.log.push(["send", port, text]);
      queueMicrotask(() => p.ports.get(port)?.onmessage?.(JSON.parse(text)));
    },
    read(call, key, uri, params) {
      p.log.push(["read", key, uri, params]);
      Promise.resolve()
        .then(() => reads[key](uri, params && JSON.parse(params)))
        .then(
          (contents) => {
            p.held.set(call, contents);
            p.core.complete(call, 0, 0, JSON.stringify(contents).length, "");
          },
          (error) => p.core.complete(call, 1, 0, 0, String(error)),
        );
    },
    callTool(call, name, args) {
      p.log.push(["callTool", call, name, args]);
      p.held.set(call, { content: [{ type: "text", text: `${name} ${args}` }] });
      p.core.starting(call);
    },
    start(call) {
      if (p.held.has(call)) p.core.complete(call, 0, 0, JSON.stringify(p.held.get(call)).length, "");
    },
    end(call) {
      p.log.push(["end", call]);
      p.held.delete(call);
    },
    watched: (uri, on) => p.log.push(["watched", uri, on]),
    closed: (port, reason) => p.log.push(["closed", port, reason]),
    report: (message) => p.log.push(["report", message]),
    dead(reason) {
      p.log.push(["dead", reason]);
      p.dead = reason;
    },
  };
  p.core = await start(callbacks, {
    wasm: base + "/pagewire.wasm",
    worker: base + "/pagewire.worker.js",
    origin,
    ...options,
  });
  stops.push(() => p.core.stop());
  return p;
}

export const request = (id, method, params) => JSON.stringify({ jsonrpc: "2.0", id, method, params });
export const initialize = request(0, "initialize", {
  protocolVersion: "2025-11-25",
  capabilities: {},
  clientInfo: { name: "c", version: "1" },
});

/** Begins a session with a page's core, on port 1. */
export function opened(p) {
  p.core.open(1);
  p.core.receive(1, initialize);
  return p;
}

/** The messages that were sent to port 1. */
export const sent = (p) =>
  p.log.filter(([what, to]) => what === "send" && to === 1).map(([, , text]) => JSON.parse(text));

/**
 * Ends when all that a page's core has held back is sent: it holds back a later change of another
 * resource, and sends what is due in its order.
 */
export async function interval(p) {
  const uri = `${origin}/marker`;
  const updates = () =>
    sent(p).filter((m) => m.method === "notifications/resources/updated" && m.params.uri === uri).length;
  p.core.register(JSON.stringify({ uri, name: "marker" }));
  p.core.receive(1, request("marker", "resources/subscribe", { uri }));
  while (!sent(p).some((m) => m.id === "marker")) await sleep(1);
  let told;
  do {
    told = updates();
    p.core.touch(uri, 1);
  } while (updates() > told); // as many as the engine announces at once
  while (updates() === told) await sleep(5);
}

export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
