/**
 * dist/pagewire.core.js, which a page fetches when its first agent connects. `start` fetches and
 * starts a core, on the page or, where the page's Content Security Policy forbids wasm there, in a
 * same-origin worker; `arrive` is the part of the page layer that only a page with agents needs.
 *
 * It never retries by itself and keeps nothing between two starts but the compiled module: the page
 * layer decides when a core is wanted.
 */
import { arrive } from "../page/late/late.ts";
import type { CoreOptions, PortCore, PortSource } from "../link/link.ts";
import { compile } from "./compile.ts";
import { remote } from "./remote.ts";
import { attach } from "./edge.ts";

export { arrive };

// For a page layer in a bundle that has dropped the exports of this file: load.ts waits for this
// call.
const GIVE = Symbol.for("pagewire.core");
(globalThis as { [GIVE]?: (module: object) => void })[GIVE]?.({ arrive, start });

/** The module that was compiled last, and its URL. */
let compiled: { url: string; module: Promise<WebAssembly.Module> } | undefined;

/** Starts a core. Rejects with an error that says what to do about it. */
export async function start(page: PortSource, options: CoreOptions, given?: Promise<Response>): Promise<PortCore> {
  if (compiled?.url !== options.wasm) compiled = { url: options.wasm, module: compile(options, given) };
  try {
    return await attach(page, await compiled.module, options);
  } catch (cause) {
    compiled = undefined; // so that a later start tries again
    // A CSP that forbids wasm throws a CompileError. A worker obeys the CSP of its own response,
    // not the page's.
    if (!(cause instanceof WebAssembly.CompileError)) throw cause;
    return await remote(page, options, cause);
  }
}
