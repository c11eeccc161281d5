/**
 * What agents get of a value of the app: a copy that JSON can say, without what looks like a
 * secret, and bounded. The app's value may be anything: cyclic, of 10 MB, with getters that throw.
 */
import { isAccount, isSecretName } from "../share/secrets.ts";

export const redaction = "[redacted]";
/** Characters of one resource, about, and levels of objects in it. */
const most = 100_000;
const deepest = 30;
/** Characters of one text. */
const longest = 4_000;

/** Keys and tokens by their shape: of known makers, of HTTP's headers, and long random ones. */
const secrets = new RegExp(
  [
    /\beyJ[\w-]{6,}\.[\w-]{6,}\.[\w-]*/, // JWT
    /(?<=\b([Bb]earer|[Bb]asic|[Dd]igest) )\S{8,}/,
    /\b(sk|pk|rk|whsec|sess|key|tok|secret)[-_][\w-]{16,}/,
    /\b(gh[a-z]|github_pat|glpat|xox[a-z]|npm|hf|shp[a-z]{2})[-_][\w-]{10,}/,
    /\bya29\.[\w-]{10,}|(?<=\bhooks\.slack\.com\/services\/)\S+|\bAGE-SECRET-KEY-\w+/,
    /\b(AKIA|ASIA)[A-Z\d]{16}\b|\bAIza[\w-]{30,}|\bSG\.[\w-]{16,}\.[\w-]{16,}/,
    /-----BEGIN [A-Z ]*PRIVATE KEY[A-Z ]*-----[\s\S]*?(-----END [A-Z ]*-----|$)/,
    /(?<=:\/\/[^\s/:@]*:)[^\s/@]+(?=@)/, // a password in an address
    /\b[\da-fA-F]{32,}\b/,
    /(?<![\w+/])(?=[\w+/-]*\d)(?=[\w+/-]*[A-Z])(?=[\w+/-]*[a-z])(?:[\w+-]{32,}|[\w+]{20,}\/[\w+/]{19,})={0,2}/,
  ]
    .map(({ source }) => source)
    .join("|"),
  "g",
);
/** Secrets by their names in a text: in an address, a form, an environment, in JSON, in headers. */
const named = new RegExp(
  "((?:pass(?:word|wd|phrase)|pwd|secret|token|credential|signature|session[-_]?id|[?&#](?:code|sig|otp|sid)|" +
    "(?:api|access|account|private|signing|master|session)[-_]?key)[\\w-]{0,40})" +
    '(?:(\\\\?"\\s*:\\s*\\\\?")[^"\\\\]+|(=["\']?|(?<=pass[wp][a-z]+):\\s+(?=\\S*\\d)(?=\\S*[a-z])(?=\\S{6}))[^\\s"\'&,;<>…]+)|' +
    "(\\b(?:authorization|cookie|x-[\\w-]{0,40}(?:key|token|auth))\\s*:\\s*)[^\\r\\n]+",
  "gi",
);
/** Numbers of cards and accounts. 13 digits are a time in milliseconds. */
const numbers = /\b(?:\d(?:[ -]?\d){13,18}|[A-Z]{2}\d\d(?:[A-Z\d]{11,30}|(?: [A-Z\d]{4}){2,7}(?: [A-Z\d]{1,3})?))\b/g;
/** Names of members, besides those of fields. Of a field, one of these words must be the whole name (`alone`), or it is none. */
const names = new RegExp(
  "(^|[^a-z])(jwt|bearer|authori[sz]ation|cookies?|[cx]srf|s(ession)?[ _-]?id|session[ _-]?key|" +
    "signature|(signing|master|account)[ _-]?key|[a-z]*tokens?)([^a-z]|$)",
  "i",
);
const isSecretMember = (name: string): boolean =>
  isSecretName(name) || names.test(name.replace(/([a-z])(?=[A-Z])/g, "$1 "));

/** A text without what looks like a secret in it. */
export const redacted = (text: string): string =>
  text
    .replace(numbers, (number) => (isAccount(number) ? redaction : number))
    .replace(named, `$1$2$3$4${redaction}`)
    .replace(secrets, redaction);

/** A text of a bounded length. What is cut is not searched, and leaves no half of a secret. */
export function short(text: string, length = longest): string {
  const over = text.length - length;
  const head = redacted(over > 0 ? text.slice(0, length + 500) : text);
  return over > 0 ? `${head.slice(0, length)}… [${over} more characters]` : head;
}

const tagOf = (value: unknown): string => Object.prototype.toString.call(value).slice(8, -1);

/** The text of anything that an app throws: it may be a symbol, or an object without a prototype. */
export function textOf(thrown: unknown): string {
  try {
    return String(thrown);
  } catch {
    return `[${tagOf(thrown)}]`;
  }
}

/** The copy of a value. */
export function plain(value: unknown): unknown {
  let left = most;
  /** The objects around the present one. */
  const around: object[] = [];

  /** `secret`: the value has a secret's name. `until`: what is to be left when it has been copied. */
  function copy(value: unknown, secret: boolean, until: number): unknown {
    left -= 6;
    if (typeof value === "function" || typeof value === "symbol" || value === undefined) return undefined;
    if (value === null || typeof value === "boolean") return value;
    if (typeof value !== "object") {
      if (secret && value !== "") return redaction;
      const text = typeof value === "string" ? short(value) : redacted(`${value}`);
      left -= text.length;
      return typeof value === "number" && text === `${value}` && Number.isFinite(value) ? value : text;
    }
    if (around.includes(value)) return "[cycle]";
    if (around.length >= deepest) return "[deeper levels are cut]";
    around.push(value);
    try {
      return copyObject(value, secret, until);
    } catch (error) {
      return `[cannot be read: ${short(textOf(error), 200)}]`;
    } finally {
      around.pop();
    }
  }

  function copyObject(value: object, secret: boolean, until: number): unknown {
    const tag = tagOf(value);
    if (value instanceof Node || value instanceof Window)
      return `[${value instanceof Node ? value.nodeName : "Window"}]`;
    if (value instanceof Error) return short(`${value}`);
    if ("$$typeof" in value) return "[element]";
    if (value instanceof RegExp) return `${value}`;
    if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer || value instanceof Blob)
      return `[${tag} of ${"size" in value ? value.size : value.byteLength} bytes]`;
    if (/^(Promise|Weak(Map|Set|Ref))$/.test(tag)) return `[${tag}]`;
    const { toJSON } = value as { toJSON?: unknown };
    if (typeof toJSON === "function") return copy(toJSON.call(value), secret, until);
    if (Array.isArray(value)) {
      // a header is a pair of name and value
      const isPair = value.length === 2 && typeof value[0] === "string" && isSecretMember(value[0]);
      return copyList(value, value.length, secret || isPair, until);
    }
    if (tag === "Set") return copyList(value as Set<unknown>, (value as Set<unknown>).size, secret, until);
    if (tag === "Map") return copyMembers([...(value as Map<unknown, unknown>).keys()], value, secret, until);
    return copyMembers(Object.keys(value), value, secret, until);
  }

  /** A large member leaves a fifth of the room to those after it. */
  const fifth = (until: number): number => until + (left - until) / 5;

  function copyList(items: Iterable<unknown>, length: number, secret: boolean, until: number): unknown[] {
    const list: unknown[] = [];
    for (const item of items) {
      if (left < until) return [...list, `[${length - list.length} more are cut]`];
      list.push(copy(item, secret, fifth(until)) ?? null);
    }
    return list;
  }

  function copyMembers(keys: unknown[], of: object, secret: boolean, until: number): object {
    const members: [string, unknown][] = [];
    const called = keys.includes("value") && Object.getOwnPropertyDescriptor(of, "name")?.value;
    const isField = typeof called === "string" && isSecretMember(called);
    for (const [i, key] of keys.entries()) {
      if (left < until) {
        members.push(["…", `${keys.length - i} more are cut`]);
        break;
      }
      // A key of a Map may be an object, and a key may be a secret itself.
      const name = typeof key === "object" ? JSON.stringify(copy(key, false, fifth(until))) : short(String(key), 200);
      left -= name.length;
      let member: unknown;
      try {
        const value = tagOf(of) === "Map" ? (of as Map<unknown, unknown>).get(key) : Reflect.get(of, key as string);
        member = copy(value, secret || isSecretMember(name) || (isField && name === "value"), fifth(until));
      } catch (error) {
        member = `[cannot be read: ${short(textOf(error), 200)}]`;
      }
      members.push([name, member]);
    }
    return Object.fromEntries(members);
  }
  return copy(value, false, 0);
}
