/**
 * Replaces js/page/basics.ts in dist/testing.js. A test's DOM has classes of its own beside those of Node, and happy-dom
 * has fields where the standard has getters: so members are looked up on the object and not on a prototype, and classes
 * are used as they are. What that protects from, a page that patches prototypes later, does not matter in a test.
 */
export { isObject } from "../page/basics.ts";

/** The DOM's class where it has one: its addEventListener takes no AbortSignal of Node. */
export const safe = <C extends { name: string }>(Class: C): C =>
  (globalThis.window as unknown as { [name: string]: C } | undefined)?.[Class.name] ?? Class;

export const uncurry =
  <T, A extends unknown[], R>(method: (this: T, ...args: A) => R) =>
  (self: T, ...args: A): R =>
    (self as { [name: string]: (...args: A) => R })[method.name]!(...args);

/** It throws for an object without such a member, as a getter throws for one that is not of its interface. */
export const getter =
  <T, K extends keyof T>(_: T, name: K) =>
  (self: unknown): T[K] => {
    if (name in (self as T & object)) return (self as T)[name];
    throw new TypeError("Illegal invocation");
  };
