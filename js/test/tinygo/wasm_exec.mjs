/**
 * A wasm_exec.js that behaves as TinyGo's does in c-shared mode, for machines without TinyGo: js/build bundles the
 * loaders with it for the tests. A build by Go with the tag lean runs underneath, which has neither safejs nor
 * recover() (wasm/build_tinygo.go). What differs from Go's is what follows:
 *
 * - There is no main that goes on: run() resolves as soon as the module is initialized.
 * - The memory is exported as `memory`, not as `mem`; of what Go's runtime needs nothing else is exported.
 * - Before run() every export traps.
 * - A panic is printed, and traps: its export throws a RuntimeError, and nobody calls `exit`. The instance is not
 *   marked: it is for who calls it to call it no more.
 * - `exited` is false until then, and `env` is not looked at.
 *
 * It never takes the place of TinyGo where there is one: make build uses that when tinygo is on PATH.
 */
import { load as loadGo } from "wasm_exec.go";

/** What is emulated, for all bundles of a process: import objects, and what is behind the instances made with them. */
const { emulated, states } = (WebAssembly.instantiate.tinygo ??= hide());

function trap() {
  throw new WebAssembly.RuntimeError("unreachable");
}

function hide() {
  const emulated = new WeakSet();
  const states = new WeakMap();
  const instantiate = WebAssembly.instantiate;
  WebAssembly.instantiate = async (module, imports) => {
    const instance = await instantiate(module, imports);
    if (!emulated.has(imports)) return instance;
    const state = { instance, running: false, trapped: false };
    const { mem, run, resume, getsp, ...calls } = instance.exports;
    const exports = { memory: mem };
    for (const [name, call] of Object.entries(calls)) {
      exports[name] = (...args) => {
        if (!state.running) trap();
        state.trapped = false;
        const result = call(...args);
        return state.trapped ? trap() : result;
      };
    }
    const shown = Object.create(instance, { exports: { value: exports } });
    states.set(shown, state);
    return shown;
  };
  WebAssembly.instantiate.tinygo = { emulated, states };
  return WebAssembly.instantiate.tinygo;
}

export function load(scope) {
  const Go = loadGo(scope);
  return class {
    #go = new Go();
    #state;
    importObject = { ...this.#go.importObject };
    exited = false;
    exitCode = 0;

    constructor() {
      emulated.add(this.importObject);
      this.#go.env = { GODEBUG: "gcstoptheworld=1" };
      this.#go.exit = () => (this.#state.trapped = true);
    }

    async run(instance) {
      let shown = instance;
      while (!states.has(shown)) shown = Object.getPrototypeOf(shown); // a test may have wrapped it
      this.#state = states.get(shown);
      this.#go.run(this.#state.instance);
      this.#state.running = true;
      if (this.#state.trapped) trap();
    }
  };
}
