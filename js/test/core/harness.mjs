/**
 * A core under Node: the built wasm behind the built loader, and a page that is a few callbacks. What the page layer
 * does in a browser is done here by hand, so that the edge can be looked at by itself.
 */
import { createServer } from "node:http";
import { after } from "node:test";
import { readFile } from "node:fs/promises";
import { start } from "../../../dist/pagewire.core.js";
import { start as startEmulated } from "../../../dist/test/tinygo.core.mjs";

export const origin = "https://x.test";

const module = await WebAssembly.compile(await readFile(new URL("../../../dist/pagewire.wasm", import.meta.url)));
const byGo = WebAssembly.Module.exports(module).some(({ name }) => name === "mem");

/**
 * The cores that are tested: what was built, and, where that is Go's, what stands in for TinyGo's (../tinygo). A panic
 * is contained where the build recovers, and its text reported; else it is a trap.
 */
export const builds = [{ name: byGo ? "Go" : "TinyGo", start, wasm: "/pagewire.wasm", recovers: byGo }];
if (byGo) builds.push({ name: "TinyGo, emulated", start: startEmulated, wasm: "/test/tinygo.wasm", recovers: false });

/** What ends the cores of a file, whose timers would hold its process for 30 s. */
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
 * Starts a core. `reads` maps a URI to a function that returns (a promise of) contents. Everything that the core
 * asks of the page is recorded in `log`; messages go to the port's transport.
 */
export async function page(reads = {}, options = {}, build = builds[0]) {
  const base = await serve();
  const p = {
    log: [],
    held: new Map(),
    ports: new Map(),
    dead: undefined,
    core: undefined,
    /** Opens a port, and gives it as a transport that the official clients take. */
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
      if (held[0] === "{") held = held.slice(1, -1); // of a tool's result the members
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
      p.core.complete(call, 0, 0, JSON.stringify(p.held.get(call)).length, "");
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
  p.core = await build.start(callbacks, {
    wasm: base + build.wasm,
    worker: base + "/pagewire.worker.js",
    origin,
    ...options,
  });
  stops.push(() => p.core.stop());
  return p;
}

export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
