/** js/page/load.ts of dist/pagewire.inject.js: all of it is there, and nothing is fetched. */
import { sessions } from "../late/sessions.ts";
import { start } from "./core.ts";

export const load = async () => ({ sessions, start });
export const preload = (): void => {};
