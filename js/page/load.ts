/**
 * How the part of the page layer that comes with the core gets to the page. In dist/pagewire.inject.js the build puts
 * js/inject/load.ts in the place of this file: there it is there already, and the core is in the gateway.
 */
import type { CoreSettings, Ground, Sessions } from "./shared.ts";

interface Late {
  sessions(ground: Ground): Sessions;
  start: Ground["start"];
}

export const load = ({ core }: CoreSettings): Promise<Late> => import(core);

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
