/**
 * The host of a module that TinyGo has compiled. It replaces TinyGo's wasm_exec.js, which serves
 * any program and weighs 2 KB of brotli more. Pagewire's modules import two functions of WASI, for
 * a panic and for a seed at the start, and the functions of syscall/js by which safejs reads their
 * options. A module that imported more would not start.
 */
import type { Go } from "wasm_exec";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Values cross as NaNs that contain a kind and a number; undefined crosses as 0. */
const ref = (kind: number, id: number): bigint => (BigInt(0x7ff80000 | kind) << 32n) | BigInt(id);

export const load = (given: object) =>
  class implements Go {
    #memory!: WebAssembly.Memory;
    /** Values by number. TinyGo has chosen the first ones. */
    #values: unknown[] = [NaN, 0, null, true, false, given];
    #view = () => new DataView(this.#memory.buffer);
    #bytes = (at: number, length: number) => new Uint8Array(this.#memory.buffer, at, length);
    #value = (of: bigint) => this.#values[Number(of & 0xffffffffn)];
    /** An object, a string or a boolean: no option is a number. */
    #keep = (value: unknown): bigint => {
      if (value === undefined) return 0n;
      if (typeof value === "boolean") return ref(0, value ? 3 : 4);
      return ref(typeof value === "string" ? 2 : 1, this.#values.push(value) - 1);
    };
    said = "";
    importObject: WebAssembly.Imports = {
      wasi_snapshot_preview1: {
        // Output of a panic, in pieces: a list of addresses and lengths.
        fd_write: (_file: number, pieces: number, count: number, written: number): number => {
          const view = this.#view();
          let all = 0;
          for (let i = 0; i < count; i++) {
            const length = view.getUint32(pieces + i * 8 + 4, true);
            this.said += decoder.decode(this.#bytes(view.getUint32(pieces + i * 8, true), length)).replace("\n", "");
            all += length;
          }
          view.setUint32(written, all, true);
          return 0;
        },
        // The seed of Go's maps.
        random_get: (at: number, length: number): number => {
          crypto.getRandomValues(this.#bytes(at, length));
          return 0;
        },
      },
      gojs: {
        "syscall/js.valueGet": (of: bigint, at: number, length: number): bigint =>
          this.#keep((this.#value(of) as Record<string, unknown>)[decoder.decode(this.#bytes(at, length))]),
        "syscall/js.valuePrepareString": (result: number, of: bigint): void => {
          const text = encoder.encode(`${this.#value(of)}`);
          this.#view().setBigUint64(result, this.#keep(text), true);
          this.#view().setInt32(result + 8, text.length, true);
        },
        "syscall/js.valueLoadString": (of: bigint, at: number, length: number): void =>
          this.#bytes(at, length).set(this.#value(of) as Uint8Array),
        "syscall/js.finalizeRef": (): void => {}, // four texts, as long as the core lives
      },
    };

    run({ exports }: WebAssembly.Instance): void {
      this.#memory = exports.memory as WebAssembly.Memory;
      (exports._initialize as () => void)();
    }
  };
