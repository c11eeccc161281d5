/**
 * Replaces js/page/early/load.ts in dist/pagewire.inject.js, which contains the late part: nothing
 * is fetched. It has no core for agents in the page.
 */
import { arrive } from "../page/late/late.ts";

const { Error } = globalThis;

const start = async () => {
  throw new Error("the page has no Pagewire of its own, and needs it for agents in the page");
};

export const load = async () => ({ arrive, start });
export const preload = (): void => {};
