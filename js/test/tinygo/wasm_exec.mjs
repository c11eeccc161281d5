/**
 * A wasm_exec.js that behaves as TinyGo's does in c-shared mode, for machines without TinyGo: js/build bundles the
 * loaders with it for the tests. Go's own build runs underneath. What differs from Go's is what follows:
 *
 * - run() resolves as soon as the module is initialized: there is no main that goes on.
 * - The memory is exported as `memory`, not as `mem`.
 *
 * It never takes the place of TinyGo where there is one: make build uses that when tinygo is on PATH.
 */
import { load as loadGo } from "wasm_exec.go";

/** Go's instances, by what the loader holds instead; one for all bundles of a process. */
const actual = (WebAssembly.instantiate.actual ??= hide());

function hide() {
  const actual = new WeakMap();
  const instantiate = WebAssembly.instantiate;
  WebAssembly.instantiate = async (module, imports) => {
    const instance = await instantiate(module, imports);
    const { mem: memory, ...others } = instance.exports;
    const shown = { exports: { memory, ...others } };
    actual.set(shown, instance);
    return shown;
  };
  WebAssembly.instantiate.actual = actual;
  return actual;
}

export function load(scope) {
  return class extends loadGo(scope) {
    async run(instance) {
      super.run(actual.get(instance));
    }
  };
}
