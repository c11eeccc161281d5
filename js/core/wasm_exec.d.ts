/** The virtual module that js/build makes of the toolchain's wasm_exec.js. */
declare module "wasm_exec" {
  /** A Go program in waiting. */
  export interface Go {
    importObject: WebAssembly.Imports;
    /** The environment variables of a Go program; TinyGo's runtime looks at none. */
    env: Record<string, string>;
    /** Called when the program ends, which a core never does unless it has failed. */
    exit: (code: number) => void;
    /** Whether the program has ended. */
    exited: boolean;
    run(instance: WebAssembly.Instance): Promise<void>;
  }
  /** Evaluates wasm_exec.js with `scope` as its global object, so that the page's own is left alone. */
  export function load(scope: object): new () => Go;
}
