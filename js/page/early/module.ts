/**
 * dist/pagewire.mjs and .cjs: the module. Importing it installs the page API. Its export
 * `pagewire`, also the default, is `globalThis.pagewire`; outside of a page it is the object of
 * absent.ts. Importing never throws, since a page, a server or a test works without agents.
 */
import type { Pagewire } from "../../pagewire.d.mts";
import { absent } from "./absent.ts";
// The build evaluates this module when `enter` is called. That throws if the DOM lacks a class.
import { enter } from "./pagewire.ts";

function install(): Pagewire {
  if (typeof document !== "object") return absent();
  try {
    // Written out, since bundlers know this pattern: by it they find the files, move them, and
    // insert the new URLs. A bundle that is no module has no import.meta: its files are in the
    // folder of the script.
    const files = import.meta.url
      ? {
          core: new URL("./pagewire.core.js", import.meta.url).href,
          wasm: new URL("./pagewire.wasm", import.meta.url).href,
          worker: new URL("./pagewire.worker.js", import.meta.url).href,
        }
      : {};
    // By the prototype: script.ts says why.
    const script = Reflect.get(Document.prototype, "currentScript", document) as HTMLScriptElement | null;
    return enter(import.meta.url || script?.src || Reflect.get(Document.prototype, "baseURI", document), files);
  } catch (cause) {
    return absent(cause);
  }
}

export const pagewire = install();
export default pagewire;
