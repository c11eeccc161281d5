/**
 * Web IDL's conversion of JavaScript values, driven by the tables of idl.gen.ts, with Chromium's
 * messages.
 *
 * Each argument of a page goes through here once, and each member is read once, in Web IDL's order.
 * The result is a copy that the page cannot change. This file knows nothing about resources:
 * registry.ts checks ranges, URIs and limits.
 */
import { isObject } from "./basics.ts";
import { aborted, apply, setPrototypeOf, toWellFormed } from "./intrinsics.ts";

/**
 * A type of the IDL, as idl/generate.mjs writes it: a name, [T] for sequence<T>, or a definition.
 */
export type Type =
  | "DOMString"
  | "USVString"
  | "boolean"
  | "double"
  | "unsigned long"
  | "unsigned long long"
  | "object"
  | "function"
  | "AbortSignal"
  | readonly [Type]
  | Dictionary
  | Enumeration;

/**
 * A name, whether no member is required, so that null and undefined are valid, and the members in
 * Web IDL's order of reading. `otherwise` is the default value. Arrays, since the names of an object
 * would cost every page 30 bytes.
 */
export type Dictionary = readonly [
  name: string,
  optional: 0 | 1,
  members: readonly (readonly [name: string, type: Type, required?: 0 | 1, otherwise?: unknown])[],
];

export type Enumeration = readonly [name: string, value: string, ...values: string[]];

/** A method of the page API: its name, and the types of its arguments; the first is required. */
export type Operation = readonly [name: string, types: readonly Type[]];

export const fail = (what: string): never => {
  throw new TypeError(what);
};

/** Converts `value`, or throws a TypeError whose message starts with `where`. */
export function convert(type: Type, value: unknown, where: string): unknown {
  if (type === "DOMString" || type === "USVString") {
    if (typeof value === "symbol") fail(where + "Cannot convert a Symbol value to a string");
    const text = `${value}`;
    return type === "DOMString" ? text : toWellFormed(text);
  }
  if (type === "boolean") return !!value;
  if (type === "double" || type === "unsigned long" || type === "unsigned long long") {
    const number = +(value as number);
    const finite = number - number === 0;
    if (type === "double") return finite ? number : fail(where + "The provided double value is non-finite.");
    // The integers are [EnforceRange]; the generator knows no other.
    const integer = number - (number % 1);
    if (!finite || integer < 0 || integer > (type === "unsigned long" ? 0xffffffff : 2 ** 53 - 1))
      fail(`${where}Value is outside the '${type}' value range.`);
    return integer || 0; // not -0
  }
  if (type === "function")
    return typeof value === "function" ? value : fail(where + "The given value is not a function.");
  if (type === "object" || type === "AbortSignal") {
    try {
      if (type === "AbortSignal") aborted(value);
      if (isObject(value)) return value;
    } catch {}
    fail(`${where}Failed to convert value to '${type}'.`);
  }
  if (typeof type[1] === "string") {
    const values = type as Enumeration;
    const text = convert("DOMString", value, where);
    for (let i = 1; i < values.length; i++) if (values[i] === text) return text;
    fail(`${where}The provided value '${text}' is not a valid enum value of type ${values[0]}.`);
  }
  if (type[1] !== undefined) {
    const dictionary = type as Dictionary;
    if (!isObject(value) && !(value == null && dictionary[1]))
      fail(`${where}The provided value is not of type '${dictionary[0]}'.`);
    // No prototype, so that JSON.stringify finds no toJSON that a library put on Object.prototype.
    const out: Record<string, unknown> = { __proto__: null };
    for (let i = 0; i < dictionary[2].length; i++) {
      const member = dictionary[2][i]!;
      const name = member[0];
      const given = value == null ? undefined : (value as Record<string, unknown>)[name];
      const inside = `${where}Failed to read the '${name}' property from '${dictionary[0]}': `;
      if (given !== undefined) out[name] = convert(member[1], given, inside);
      else if (member[2]) fail(inside + "Required member is undefined.");
      else if (member[3] !== undefined) out[name] = member[3];
    }
    return out;
  }
  if (!isObject(value)) fail(where + "The provided value cannot be converted to a sequence.");
  const iterate = (value as Iterable<unknown>)[Symbol.iterator];
  if (typeof iterate !== "function") fail(where + "The object must have a callable @@iterator property.");
  const list: unknown[] = [];
  const once = { [Symbol.iterator]: () => apply(iterate, value, []) as Iterator<unknown> };
  for (const item of once) list[list.length] = convert((type as readonly [Type])[0], item, where);
  return (setPrototypeOf(list, null), list); // no Array.prototype.toJSON either
}
