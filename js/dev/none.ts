/** dist/dev.none.js: `pagewire/dev` where the bundler does not say that it builds for development. */
import { inert } from "./inert.ts";

export const { share, stores, pinia, queries } = inert();
