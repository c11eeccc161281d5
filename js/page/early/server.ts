/**
 * dist/pagewire.server.mjs and .cjs: the module for servers, whose bundles then contain nothing of
 * the page layer.
 */
import { absent } from "./absent.ts";

export const pagewire = absent();
export default pagewire;
