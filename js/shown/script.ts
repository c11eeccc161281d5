/**
 * dist/pagewire.shown.js: a classic script for an isolated world. There, and nowhere else, it has a
 * name.
 */
import { shown } from "./shown.ts";

Object.assign(globalThis, { pagewireShown: shown });
