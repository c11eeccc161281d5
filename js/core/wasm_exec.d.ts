/**
 * The virtual module that js/build makes: of Go's wasm_exec.js, or of tinygo.ts if TinyGo compiles the core.
 */
declare module "wasm_exec" {
  /** A Go program that has not started. */
  export interface Go {
    importObject: WebAssembly.Imports;
    /** The output of a panic. Go's build reports it itself. */
    said?: string;
    /** Called when the program of Go's build ends, which only a failed core does. */
    ended?: (why: string) => void;
    /** Starts the program. Go's runs on. TinyGo's has started when this returns, and may throw. */
    run(instance: WebAssembly.Instance): void;
  }
  /** The program sees the members of `given` in its global object, which is not the page's. */
  export function load(given: object): new () => Go;
}
