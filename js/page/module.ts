/**
 * dist/pagewire.mjs: the module. Importing it installs the page API; it exports the same object as
 * `globalThis.pagewire`, under its name and as the default.
 */
import { boot } from "./pagewire.ts";

// Spelled out, since this pattern is how bundlers find files, move them, and put in where they are then. A server that
// renders has no core, and no document that the options could be relative to.
const files =
  typeof document === "object"
    ? {
        core: new URL("./pagewire.core.js", import.meta.url).href,
        wasm: new URL("./pagewire.wasm", import.meta.url).href,
        worker: new URL("./pagewire.worker.js", import.meta.url).href,
      }
    : {};

export const pagewire = boot(import.meta.url, files);
export default pagewire;
