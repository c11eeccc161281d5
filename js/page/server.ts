/** dist/pagewire.server.mjs and .cjs: the module for servers. Bundles of theirs carry nothing of the page layer. */
import { absent } from "./absent.ts";

export const pagewire = absent();
export default pagewire;
