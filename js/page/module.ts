/**
 * dist/pagewire.mjs: the module. Importing it installs the page API; it exports the same object as
 * `globalThis.pagewire`, under its name and as the default.
 */
import { boot } from "./pagewire.ts";

export const pagewire = boot(import.meta.url, {});
export default pagewire;
