/**
 * Loads the late part of the page layer, which comes with the core. The build replaces this file by
 * js/inject/load.ts in dist/pagewire.inject.js, and by js/extension/load.ts in the extension: both
 * contain the late part.
 */
import type { CoreSettings, LateModule, Load } from "./shared.ts";

/** Whether this is pagewire.mjs, which bundlers process. */
declare const PAGEWIRE_BUNDLED: boolean;

/** The response with the wasm, if `preload` was called. */
let wasm: Promise<Response> | undefined;
/** The late part, if core.ts has passed it by a call. */
let given: LateModule | undefined;

const GIVE = Symbol.for("pagewire.core");

type Page = { [GIVE]?: (module: LateModule) => void };

export const load: Load = async ({ core }) => {
  // Parcel turns a module that is named by a URL into a script without exports. Then core.ts calls
  // this, once.
  if (PAGEWIRE_BUNDLED)
    (globalThis as Page)[GIVE] = (module) => {
      given = module;
    };
  let late: LateModule = await import(core);
  if (PAGEWIRE_BUNDLED) {
    delete (globalThis as Page)[GIVE];
    if (!late.arrive) late = given as LateModule;
  }
  return { ...late, start: (page, options) => late.start(page, options, wasm) };
};

/**
 * Starts the fetch of the wasm while the loader is still on its way: one round trip instead of two.
 * A preload link would do that too, but WebKit then fetches the file twice.
 */
export async function preload(settings: CoreSettings): Promise<void> {
  try {
    await (wasm = fetch(settings.wasm, settings)); // of the settings, fetch uses only `integrity`
  } catch {} // the loader reports it
}
