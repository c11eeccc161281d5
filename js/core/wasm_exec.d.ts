/**
 * The virtual module that js/build makes for the toolchain that compiles the core: of Go's wasm_exec.js, or tinygo.ts.
 */
declare module "wasm_exec" {
  /** A Go program in waiting. */
  export interface Go {
    importObject: WebAssembly.Imports;
    /** The output of a panic. Go's build reports it itself. */
    said?: string;
    /** Called where the program of Go's build ends, which a core never does unless it has failed. */
    ended?: (why: string) => void;
    /** Starts the program. Go's runs on. TinyGo's has started when this returns, and may throw. */
    run(instance: WebAssembly.Instance): void;
  }
  /** The program sees what is `given` as members of its global object, which is not the page's. */
  export function load(given: object): new () => Go;
}
