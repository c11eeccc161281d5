/**
 * Replaces js/page/early/load.ts in dist/testing.js, which contains the late part and the core's
 * loader. Under Node the wasm is read from the package's own folder; a browser fetches it from
 * there.
 */
import { arrive, start } from "../core/core.ts";
import { attach } from "../core/edge.ts";
import { builtin } from "./node.ts";
import type { Load } from "../page/early/shared.ts";

/** The path of this module in CommonJS. */
declare const __filename: string | undefined;

/** The URL in a module is written out, since bundlers know this pattern. */
const place = () =>
  typeof __filename === "string"
    ? __filename.replace(/[^/\\]*$/, "pagewire.wasm")
    : new URL("./pagewire.wasm", import.meta.url).href;

let module: Promise<WebAssembly.Module> | undefined;

export const load: Load = async () => ({
  arrive,
  async start(page, options) {
    const at = place();
    if (!builtin) return await start(page, { ...options, wasm: at });
    const file = at.startsWith("file:") ? builtin("node:url").fileURLToPath(at) : at;
    module ??= WebAssembly.compile(builtin("node:fs").readFileSync(file));
    return await attach(page, await module, options);
  },
});
export const preload = (): void => {};
