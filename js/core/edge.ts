/**
 * The edge between JavaScript and Go: the other side of wasm/edge.go.
 *
 * What travels: numbers, and text through the instance's linear memory; a message is one piece of JSON text. This
 * side calls the exports, the engine's answers come by the imports below. Answers: an export returns alive (0) or dead
 * (1), at once; read is answered by complete. On close: once an export has returned dead, or thrown, or the Go program
 * has exited, the instance is never called again.
 *
 * It never lets an exception of the page reach Go, where it would leave half-finished state, and keeps no view of
 * the memory across a call that may make it grow.
 */
import { load } from "wasm_exec";
import type { CoreOptions, PortCore, PortSource } from "../link/link.ts";

/** The exports of wasm/edge.go. */
interface Exports {
  mem?: WebAssembly.Memory;
  memory?: WebAssembly.Memory;
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

/** The reason where an export returns dead. A core that Go has compiled has reported the details itself. */
const reported = "the core stopped on an internal error";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Starts an instance of `module` and returns it as a Core that calls `page`. Rejects if it does not come up. */
export async function attach(page: PortSource, module: WebAssembly.Module, options: CoreOptions): Promise<PortCore> {
  let memory: WebAssembly.Memory;
  let exports: Exports | undefined;
  let view = new Uint8Array();
  // The timer that runs, when it fires, and when a tick is due (-1: never).
  let timer: ReturnType<typeof setTimeout> | undefined;
  let firesAt = Infinity;
  let dueAt = -1;
  let ended = "";

  const stop = (): void => {
    exports = undefined;
    clearTimeout(timer);
  };
  /** Why the core ended, until the page has been told. */
  let failure: (() => string) | undefined;
  const tell = (): void => {
    const why = failure;
    if (!why) return;
    failure = undefined;
    try {
      clearTimeout(timer);
      ended = why();
      if (ended !== reported) page.report(ended);
      page.dead(ended);
    } catch (cause) {
      failure = why;
      throw cause;
    }
  };
  const die = (reason: string): void => {
    if (!exports) return;
    exports = undefined;
    failure = () => reason;
    guarded(tell);
  };
  // An exception of the page layer must not unwind Go's frames. It throws none by contract; this is for its bugs.
  const guarded = (call: () => void): void => {
    try {
      call();
    } catch (cause) {
      console.error("pagewire:", cause);
    }
  };
  // Memory that grows detaches its buffer: then the view is made anew.
  const bytes = (): Uint8Array => (view.buffer === memory.buffer ? view : (view = new Uint8Array(memory.buffer)));
  const text = (at: number, length: number): string =>
    length ? decoder.decode(bytes().subarray(at >>> 0, (at >>> 0) + length)) : "";

  /**
   * Calls an export, unless the core has ended. A result other than alive (0) ends it. In TinyGo's build a panic is a
   * trap, which is an exception here; so are a stack and a memory that are full, in both.
   */
  const enter = (call: (e: Exports) => number): void => {
    if (!exports) return tell();
    try {
      if (call(exports) === 0) return;
      failure = () => reported;
    } catch (cause) {
      failure = () => `the core stopped: ${go.said || cause}`;
    }
    // With a full stack every call throws, so nothing is called before this. Then a timer tells the page; if not even
    // the timer can be set, the page's next call does.
    exports = undefined;
    try {
      tell();
    } catch {
      setTimeout(tell);
    }
  };
  /** Writes `s` to the instance and returns its length in bytes, or -1 if it is longer than `most`. */
  const write = (e: Exports, s: string, most: number): number => {
    if (!s) return 0;
    // A UTF-16 unit takes three bytes of UTF-8 at the most.
    const room = Math.min(s.length * 3, most);
    const at = e.buffer(room) >>> 0;
    const { read, written } = encoder.encodeInto(s, bytes().subarray(at, at + room));
    return read < s.length ? -1 : written;
  };
  const whole = 1 << 30;
  const now = (): number => Math.floor(performance.now());

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

  const imports = {
    send(port: number, at: number, length: number, call: number, hole: number): void {
      const message = text(at, length);
      // The hole is told in bytes. Where all is ASCII, those are the UTF-16 units.
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
    // A timer that fires too soon is left alone, and set again when it does: every read moves the time to and fro, and
    // setting a timer and clearing it costs 5 us.
    wake(at: number): void {
      dueAt = at;
      if (at >= 0 && at < firesAt) arm();
    },
  };

  const Go = load({ pagewireOptions: options });
  const go = new Go();
  go.importObject.pagewire = imports;
  const instance = await WebAssembly.instantiate(module, go.importObject);
  const up = instance.exports as unknown as Exports;
  memory = (up.mem ?? up.memory)!;
  exports = up;
  go.ended = die;
  try {
    go.run(instance);
  } catch (cause) {
    die(`the core ended: ${go.said || cause}`);
  }
  if (!exports) throw new Error(`pagewire: ${ended}`);
  const messageBytes = up.limit();

  return {
    register: (descriptor) => enter((e) => e.register(now(), write(e, descriptor, whole))),
    unregister: (uri) => enter((e) => e.unregister(now(), write(e, uri, whole))),
    // The engine in the page needs no revisions.
    touch: (uri) => enter((e) => e.touch(now(), write(e, uri, whole))),
    setTools: (tools) => enter((e) => e.setTools(now(), write(e, tools, whole))),
    open: (port) => enter((e) => e.open(now(), port)),
    receive: (port, message) =>
      enter((e) => {
        const length = message.length <= messageBytes ? write(e, message, messageBytes) : -1;
        if (length >= 0) return e.receive(now(), port, length, 1);
        // Too large: its beginning is enough for the engine to answer under its id.
        return e.receive(now(), port, write(e, message.slice(0, 512), whole), 0);
      }),
    writable: (port, on) => enter((e) => e.writable(now(), port, on ? 1 : 0)),
    close: (port) => enter((e) => e.shut(now(), port)),
    complete: (call, status, _revision, size, detail) =>
      enter((e) => e.complete(now(), call, status, Math.min(size, 0x7fffffff), write(e, detail.slice(0, 1000), whole))),
    stop,
  };
}
