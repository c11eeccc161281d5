/** Tools for taking references to intrinsics; used by intrinsics.ts early, and by binary.ts late. */

const { bind, call } = Function.prototype;

/** Makes a method a function that takes its `this` first. Calling a bound function looks nothing up. */
export const uncurry = bind.bind(call as never) as <T, A extends unknown[], R>(
  method: (this: T, ...args: A) => R,
) => (self: T, ...args: A) => R;

/** A getter of a prototype as a function; it throws for an object that is not of that interface. */
export const getter = <T, K extends keyof T>(prototype: T, name: K) =>
  uncurry(Object.getOwnPropertyDescriptor(prototype, name)!.get as (this: unknown) => T[K]);

export const isObject = (value: unknown): value is object =>
  (typeof value === "object" && value !== null) || typeof value === "function";
