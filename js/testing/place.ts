/**
 * Globals that the page layer needs and a test's DOM lacks. Imported first: the page layer reads
 * them at once.
 */
import { builtin } from "./node.ts";

if (typeof document === "object") {
  const lacking = {
    isSecureContext: true,
    origin: location.origin,
    // jsdom has none, and Jest hides Node's. No port can be posted there.
    MessagePort: class {
      postMessage() {}
      start() {}
      close() {}
    },
    TextEncoder: builtin?.("node:util").TextEncoder,
    TextDecoder: builtin?.("node:util").TextDecoder,
  };
  for (const [name, value] of Object.entries(lacking))
    if (!(name in globalThis)) Object.defineProperty(globalThis, name, { configurable: true, writable: true, value });
}
