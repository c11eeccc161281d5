/**
 * How the part of the page layer that comes with the core gets to the page. In dist/pagewire.inject.js the build puts
 * js/inject/load.ts in the place of this file: there it is there already.
 */
import type { CoreSettings, LateModule, Load } from "./shared.ts";

/** In pagewire.mjs, which bundlers know. */
declare const PAGEWIRE_BUNDLED: boolean;

/** What is fetched of the wasm. The loader takes it once. */
let wasm: Promise<Response> | undefined;
/** What the loader gave without an export. */
let given: LateModule | undefined;

const GIVE = Symbol.for("pagewire.core");

export const load: Load = async ({ core }) => {
  const page = globalThis as { [GIVE]?: (module: LateModule) => void };
  // Of a module that is named by a URL Parcel makes a script without exports: core.ts calls this then, once.
  if (PAGEWIRE_BUNDLED)
    page[GIVE] = (module) => {
      given = module;
    };
  let late: LateModule = await import(core);
  if (PAGEWIRE_BUNDLED) {
    delete page[GIVE];
    if (!late.arrive) late = given as LateModule;
  }
  return { ...late, start: (page, options) => late.start(page, options, wasm) };
};

/**
 * Starts the fetch of the wasm while the loader is still on its way: one round trip instead of two. By a link that
 * preloads, WebKit fetched it twice: there a fetch never finds that.
 */
export async function preload(settings: CoreSettings): Promise<void> {
  try {
    await (wasm = fetch(settings.wasm, settings)); // of these, fetch knows `integrity` alone
  } catch {} // the loader reports it
}
