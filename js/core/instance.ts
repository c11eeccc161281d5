/**
 * A running instance of Pagewire's wasm module, for the edge (edge.ts): its exports, text in its
 * linear memory, and its end.
 *
 * An export returns a negative number if the core is dead. After that, after an exception of an
 * export, and after the exit of the Go program, the instance is never called again.
 */
import { load } from "wasm_exec";

/** The exports that every module has. */
interface Exports {
  mem?: WebAssembly.Memory;
  memory?: WebAssembly.Memory;
  buffer(bytes: number): number;
}

/**
 * The reason if an export returns dead. A core that Go has compiled has reported the details
 * itself.
 */
export const reported = "the core stopped on an internal error";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export const now = (): number => Math.floor(performance.now());

/**
 * Calls JavaScript for Go. An exception, which only a bug can throw, must not unwind Go's frames.
 */
export function guarded(call: () => void): void {
  try {
    call();
  } catch (cause) {
    console.error("pagewire:", cause);
  }
}

/**
 * Starts an instance, or rejects. `imports` makes its imports, given a function that reads text
 * from its memory. `dead` is called once, when the core has died.
 */
export async function instantiate<E extends Exports>(
  module: WebAssembly.Module,
  given: object,
  imports: (text: (at: number, length: number) => string) => WebAssembly.ModuleImports,
  dead: (reason: string) => void,
) {
  let memory: WebAssembly.Memory;
  let exports: E | undefined;
  let view = new Uint8Array();
  let ended = "";
  /** Makes the reason of the death, until `dead` has been called. */
  let failure: (() => string) | undefined;

  const tell = (): void => {
    const why = failure;
    if (!why) return;
    failure = undefined;
    try {
      dead((ended = why()));
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
  // Memory that grows detaches its buffer: then a new view is made.
  const bytes = (): Uint8Array => (view.buffer === memory.buffer ? view : (view = new Uint8Array(memory.buffer)));
  const text = (at: number, length: number): string =>
    length ? decoder.decode(bytes().subarray(at >>> 0, (at >>> 0) + length)) : "";

  /**
   * Calls an export and returns its result; 0 if the core has ended. In TinyGo's build a panic is a
   * trap, which is an exception here. So is a full stack or a full memory, in both builds.
   */
  const enter = (call: (e: E) => number): number => {
    if (!exports) {
      tell();
      return 0;
    }
    try {
      const result = call(exports);
      if (result >= 0) return result;
      failure = () => reported;
    } catch (cause) {
      failure = () => `the core stopped: ${go.said || cause}`;
    }
    // With a full stack every call throws, so nothing is called before this. Then a timer calls
    // `dead`; if not even the timer can be set, the next `enter` does.
    exports = undefined;
    try {
      tell();
    } catch {
      setTimeout(tell);
    }
    return 0;
  };
  /**
   * Writes `s` for the export that is being called. Returns its length in bytes, or -1 if it is
   * longer than `most`.
   */
  const write = (s: string, most = 1 << 30): number => {
    if (!s) return 0;
    // A UTF-16 unit takes three bytes of UTF-8 at the most.
    const room = Math.min(s.length * 3, most);
    const at = exports!.buffer(room) >>> 0;
    const { read, written } = encoder.encodeInto(s, bytes().subarray(at, at + room));
    return read < s.length ? -1 : written;
  };

  const Go = load(given);
  const go = new Go();
  go.importObject.pagewire = imports(text);
  const instance = await WebAssembly.instantiate(module, go.importObject);
  const started = instance.exports as unknown as E;
  memory = (started.mem ?? started.memory)!;
  exports = started;
  go.ended = die;
  try {
    go.run(instance);
  } catch (cause) {
    die(`the core ended: ${go.said || cause}`);
  }
  if (!exports) throw new Error(`pagewire: ${ended}`);
  return {
    exports: started,
    enter,
    write,
    stop: () => {
      exports = undefined;
    },
  };
}
