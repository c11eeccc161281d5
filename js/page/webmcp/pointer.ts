/**
 * JSON Pointers (RFC 6901). The gateway's tool has the same (bridge/gateway/live/delta), with the
 * test vectors of both.
 */
import { isArray } from "../common/binary.ts";
import { isObject } from "../early/basics.ts";
import { exec, parse, stringify } from "../common/intrinsics.ts";
import { refuse } from "../common/refusal.ts";

const { hasOwn, keys } = Object;
/** The most names of an object that an error lists. */
const maxNames = 20;

/** The part of a JSON text at a pointer, as JSON text. */
export function partOf(text: string, pointer: string): string {
  let value: unknown;
  try {
    value = parse(text);
  } catch {
    refuse("it is not JSON, so it has no pointer");
  }
  if (pointer && pointer[0] !== "/") refuse(`the pointer '${pointer}' does not begin with /`);
  for (let at = 0; at < pointer.length; ) {
    let token = "";
    for (at++; at < pointer.length && pointer[at] !== "/"; at++) {
      const escaped = pointer[at] === "~" && (pointer[at + 1] === "0" || pointer[at + 1] === "1");
      token += escaped ? (pointer[++at] === "0" ? "~" : "/") : pointer[at];
    }
    const known = isArray(value)
      ? exec(/^(0|[1-9]\d*)$/, token) && +token < value.length
      : isObject(value) && hasOwn(value, token);
    if (!known) refuse(`there is nothing at '${token}' of '${pointer}': ${holds(value)}`);
    value = (value as { [name: string]: unknown })[token];
  }
  return stringify(value);
}

function holds(value: unknown): string {
  if (isArray(value)) return `an array of ${value.length} is there`;
  if (!isObject(value)) return "what is there has no parts";
  const names = keys(value);
  let list = "";
  for (let i = 0; i < names.length && i < maxNames; i++) list += (i ? ", " : "") + stringify(names[i]);
  return names.length ? `there are ${list}${names.length > maxNames ? " and more" : ""}` : "the object there is empty";
}
