/**
 * dist/pagewire.pick.js: a classic script for an isolated world. There, and nowhere else, it has a
 * name.
 */
import { ruleOf } from "./pick.ts";

Object.assign(globalThis, { pagewirePick: ruleOf });
