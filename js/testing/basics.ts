/**
 * Replaces js/page/early/basics.ts in dist/testing.js. A test's DOM has classes of its own besides
 * those of Node, and happy-dom has fields instead of the standard's getters. So members are looked
 * up on the object, not on a prototype, and classes are used as they are. A test needs no
 * protection from a page that patches prototypes later.
 */
export { isObject, modelContext } from "../page/early/basics.ts";

/** The DOM's class if it has one: the DOM's addEventListener takes no AbortSignal of Node. */
export const safe = <C extends { name: string }>(Class: C): C =>
  (globalThis.window as unknown as { [name: string]: C } | undefined)?.[Class.name] ?? Class;

export const uncurry =
  <T, A extends unknown[], R>(method: (this: T, ...args: A) => R) =>
  (self: T, ...args: A): R =>
    (self as { [name: string]: (...args: A) => R })[method.name]!(...args);

export const ofDocument = (name: string) => (document as never)[name];

/**
 * It throws for an object without such a member, as a getter throws for an object of another
 * interface.
 */
export const getter =
  <T, K extends keyof T>(_: T, name: K) =>
  (self: unknown): T[K] => {
    if (name in (self as T & object)) return (self as T)[name];
    throw new TypeError("Illegal invocation");
  };
