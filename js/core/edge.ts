/**
 * The edge between JavaScript and Go: the other side of wasm/edge.go.
 *
 * What travels: numbers, and text through the instance's linear memory; a message is one piece of
 * JSON text. This side calls the exports, the engine's answers come by the imports below. Answers:
 * an export returns at once, alive (0) or dead; read is answered by complete. On close: see
 * instance.ts.
 *
 * It never lets an exception of the page reach Go, where it would leave half-finished state, and
 * keeps no view of the memory across a call that may make it grow.
 */
import { guarded, instantiate, now, reported } from "./instance.ts";
import { later } from "../link/lateness.ts";
import type { CoreOptions, PortCore, PortSource } from "../link/link.ts";

/** The exports of wasm/edge.go. */
interface Exports {
  limit(): number;
  buffer(bytes: number): number;
  register(now: number, bytes: number): number;
  unregister(now: number, bytes: number): number;
  touch(now: number, bytes: number): number;
  setTools(now: number, bytes: number): number;
  open(now: number, port: number): number;
  receive(now: number, port: number, bytes: number, whole: number): number;
  writable(now: number, port: number, on: number): number;
  shut(now: number, port: number): number;
  complete(now: number, call: number, status: number, size: number, bytes: number): number;
  tick(now: number): number;
}

/**
 * Starts an instance of `module` and returns it as a Core that calls `page`. Rejects if it does not
 * come up.
 */
export async function attach(page: PortSource, module: WebAssembly.Module, options: CoreOptions): Promise<PortCore> {
  // The timer that runs, when it fires, and when a tick is due (-1: never).
  let timer: ReturnType<typeof setTimeout> | undefined;
  let firesAt = Infinity;
  let dueAt = -1;

  const arm = (): void => {
    clearTimeout(timer);
    firesAt = dueAt;
    timer = setTimeout(fire, Math.max(0, dueAt - now()));
  };
  const fire = (): void => {
    firesAt = Infinity;
    if (dueAt < 0) return;
    if (now() < dueAt) arm();
    else enter((e) => e.tick(now()));
  };

  const imports = (text: (at: number, length: number) => string) => ({
    send(port: number, at: number, length: number, call: number, hole: number): void {
      const message = text(at, length);
      // `hole` is in bytes. If all is ASCII, those are the UTF-16 units.
      const before = call && message.length !== length ? text(at, hole).length : hole;
      guarded(() => page.send(port, message, call, before));
    },
    read(
      call: number,
      key: number,
      keyLength: number,
      uri: number,
      uriLength: number,
      params: number,
      paramsLength: number,
    ): void {
      const u = text(uri, uriLength);
      const k = key === uri && keyLength === uriLength ? u : text(key, keyLength);
      const p = text(params, paramsLength);
      guarded(() => page.read(call, k, u, p));
    },
    callTool(call: number, name: number, nameLength: number, args: number, argsLength: number): void {
      const [n, a] = [text(name, nameLength), text(args, argsLength)];
      guarded(() => page.callTool(call, n, a, ""));
    },
    end(call: number): void {
      guarded(() => page.end(call));
    },
    watched(uri: number, length: number, on: number): void {
      const u = text(uri, length);
      guarded(() => page.watched(u, on !== 0));
    },
    closed(port: number, why: number, length: number): void {
      const w = text(why, length);
      guarded(() => page.closed(port, w));
    },
    report(what: number, length: number): void {
      const w = text(what, length);
      guarded(() => page.report(w));
    },
    // A timer that fires too soon is left alone, and set again when it fires: every read moves the
    // time back and forth, and setting a timer and clearing it costs 5 us.
    wake(at: number): void {
      dueAt = at;
      if (at >= 0 && at < firesAt) arm();
    },
  });

  const { exports, enter, write, stop } = await instantiate<Exports>(
    module,
    { pagewireOptions: options },
    imports,
    (reason) => {
      clearTimeout(timer);
      if (reason !== reported) page.report(reason);
      page.dead(reason);
    },
  );
  const messageBytes = exports.limit();

  return {
    register: (descriptor) => enter((e) => e.register(now(), write(descriptor))),
    unregister: (uri) => enter((e) => e.unregister(now(), write(uri))),
    // The engine in the page needs no revisions.
    touch: (uri) => enter((e) => e.touch(now(), write(uri))),
    // An agent in the page may have withdrawn the call, in a message that waits behind it. Chromium
    // 156 takes one message of a port alone after the page has stood still, and the others
    // together.
    starting: (call) => later(() => later(() => page.start(call))),
    setTools: (tools) => enter((e) => e.setTools(now(), write(tools))),
    open: (port) => enter((e) => e.open(now(), port)),
    receive: (port, message) =>
      enter((e) => {
        const length = message.length <= messageBytes ? write(message, messageBytes) : -1;
        if (length >= 0) return e.receive(now(), port, length, 1);
        // Too large: its beginning or its end has the id, under which the engine answers.
        return e.receive(now(), port, write(message.slice(0, 512) + message.slice(-512)), 0);
      }),
    writable: (port, on) => enter((e) => e.writable(now(), port, on ? 1 : 0)),
    close: (port) => enter((e) => e.shut(now(), port)),
    complete: (call, status, _revision, size, detail) =>
      enter((e) => e.complete(now(), call, status, Math.min(size, 0x7fffffff), write(detail.slice(0, 1000)))),
    stop() {
      stop();
      clearTimeout(timer);
    },
  };
}
