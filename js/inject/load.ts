/** js/page/load.ts of dist/pagewire.inject.js: all of it is there, and nothing is fetched. */
import { arrive } from "../late/late.ts";
import { start } from "./core.ts";

export const load = async () => ({ arrive, start });
export const preload = (): void => {};
