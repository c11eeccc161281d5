/**
 * How the part of the page layer that comes with the core gets to the page. In dist/pagewire.inject.js the build puts
 * js/inject/load.ts in the place of this file: there it is there already, and the core is in the gateway.
 */
import type { CoreSettings, Early, Late } from "./shared.ts";

interface LateModule {
  arrive(early: Early): Late;
  start: Early["start"];
}

export const load = ({ core }: CoreSettings): Promise<LateModule> => import(core);

/**
 * Starts the fetch of the wasm while the loader is still on its way: one round trip instead of two. A fetch of the same
 * kind then finds it. What goes wrong here goes wrong there again, with a message.
 */
export function preload({ wasm, integrity }: CoreSettings): void {
  try {
    const link = document.createElement("link");
    document.head.append(
      Object.assign(link, { rel: "preload", as: "fetch", crossOrigin: "", href: wasm, integrity: integrity ?? "" }),
    );
  } catch {}
}
