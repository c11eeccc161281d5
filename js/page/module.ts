/**
 * dist/pagewire.mjs and .cjs: the module. Importing it installs the page API; it exports the same object as
 * `globalThis.pagewire`, under its name and as the default; outside of a page, the object of absent.ts. It never
 * throws: a page works without agents, and so do a server and a test.
 */
import type { Pagewire } from "../pagewire.d.ts";
import { absent } from "./absent.ts";
// The build evaluates it when `enter` is called: that throws where the DOM lacks a class.
import { enter } from "./pagewire.ts";

function install(): Pagewire {
  if (typeof document !== "object") return absent();
  try {
    // Written out, since bundlers know this pattern: they find the files by it, move them, and insert their new place.
    // A bundle that is no module has no import.meta: then the files are looked for beside the script.
    const files = import.meta.url
      ? {
          core: new URL("./pagewire.core.js", import.meta.url).href,
          wasm: new URL("./pagewire.wasm", import.meta.url).href,
          worker: new URL("./pagewire.worker.js", import.meta.url).href,
        }
      : {};
    const script = document.currentScript as HTMLScriptElement | null;
    return enter(import.meta.url || script?.src || document.baseURI, files);
  } catch (cause) {
    return absent(cause);
  }
}

export const pagewire = install();
export default pagewire;
