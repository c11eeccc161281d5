/**
 * Converts a read's result to contents, by the algorithm above ResourceReadCallback in the IDL.
 *
 * Page values are read here, each member once, and leave as plain strings. It knows nothing of
 * calls. Any exception, also of the page's own code, means that the result is not resource
 * contents.
 */
import { isObject } from "../early/basics.ts";
import { apply, exec, slice, stringify } from "../common/intrinsics.ts";
import {
  blobBytes,
  blobSize,
  bufferLength,
  Bytes,
  encodeLatin1,
  fromCharCode,
  isArray,
  isView,
  toBase64,
} from "../common/binary.ts";

/** A ModelContextResourceContents with its defaults filled in; it has either text or blob. */
export interface Item {
  readonly uri: string;
  readonly mimeType?: string;
  readonly text?: string;
  readonly blob?: string;
}

const maxItems = 1000;
const { getPrototypeOf } = Object;

/** The canonical form of a URI at the page's origin; throws for any other. */
type Own = (uri: string) => string;

/** The contents of `uri`, from the value of the page's callback. */
export async function toContents(
  value: unknown,
  uri: string,
  mimeType: string | undefined,
  ownURI: Own,
): Promise<Item[]> {
  if (typeof value === "string") return [item(uri, mimeType, "text", value)];
  const list = isObject(value)
    ? (value as { contents?: unknown }).contents
    : fail(`${value === null ? value : typeof value} is no result`, value);
  if (list === undefined) return [await convertItem(value, uri, mimeType, ownURI)];
  const count = isArray(list) ? list.length : 0;
  if (count < 1 || count > maxItems)
    fail(`'contents' is not an array of 1 to ${maxItems}`, isArray(list) ? undefined : value);
  const items: Item[] = [];
  for (let i = 0; i < count; i++) items[i] = await convertItem((list as unknown[])[i], uri, mimeType, ownURI);
  return items;
}

async function convertItem(value: unknown, uri: string, mimeType: string | undefined, ownURI: Own): Promise<Item> {
  if (!isObject(value)) fail("an item is no object");
  const { blob, mimeType: type = mimeType, text, uri: own } = value as { [member: string]: unknown };
  if (type !== undefined && typeof type !== "string") fail("'mimeType' is no string");
  if (own !== undefined && own !== uri) {
    if (typeof own !== "string") fail("'uri' is no string");
    uri = ownURI(own as string);
  }
  // A Response has both, as methods.
  if ((text === undefined) === (blob === undefined))
    fail("an item has exactly one of 'text' and 'blob'", typeof text === "string" ? undefined : value);
  if (text === undefined) return item(uri, type as string, "blob", await base64(blob));
  return typeof text === "string"
    ? item(uri, type as string, "text", text)
    : fail("'text' is no string", typeof text === "function" ? value : text);
}

/** Without a prototype, so that no toJSON of a library gets into the envelope. */
const item = (uri: string, mimeType: string | undefined, kind: "text" | "blob", data: string) =>
  ({ __proto__: null, uri, ...(mimeType !== undefined && { mimeType }), [kind]: data }) as unknown as Item;

function fail(what: string, given?: unknown): never {
  throw new TypeError(`${what}; read returns a string, {text}, {blob} or {contents: [...]}${remedy(given)}`);
}

/** What makes contents of a value that is none. */
function remedy(given: unknown): string {
  if (isView(given) || is(bufferLength, given) || is(blobSize, given)) return ". For bytes, return {blob: value}";
  try {
    const json = stringify(given);
    if (json === "{}" && getPrototypeOf(given as object) !== Object.prototype)
      return ". Its JSON is {}: return JSON.stringify([...map]), await promise, or await response.text()";
    return json ? ". For JSON, return JSON.stringify(value)" : "";
  } catch {
    return ""; // a cycle or a BigInt
  }
}

/** Standard base64 of a base64 string (checked), a BufferSource or a Blob. */
async function base64(value: unknown): Promise<string> {
  if (typeof value === "string") {
    const length = value.length;
    const bare = value[length - 1] !== "=" ? length : value[length - 2] !== "=" ? length - 1 : length - 2;
    return length % 4 || exec(/[^A-Za-z0-9+/]/, slice(value, 0, bare)) ? fail("'blob' is not base64") : value;
  }
  if (isView(value)) return encode(new Bytes(value.buffer, value.byteOffset, value.byteLength));
  if (is(bufferLength, value)) return encode(new Bytes(value as ArrayBuffer));
  if (is(blobSize, value)) return encode(new Bytes(await blobBytes(value as Blob)));
  fail("'blob' is neither bytes nor base64");
}

/** Whether `value` is of the interface that the getter `brand` belongs to. */
const is = (brand: (value: unknown) => number, value: unknown) => {
  try {
    return brand(value) >= 0;
  } catch {
    return false;
  }
};

function encode(bytes: Uint8Array): string {
  if (toBase64) return apply(toBase64, bytes, []);
  let latin1 = "";
  for (let i = 0; i < bytes.length; i++) latin1 += fromCharCode(bytes[i]!);
  return encodeLatin1(latin1);
}

/** The length of the contents as JSON text. Serialising only to measure costs about 1 ms per MB. */
export const jsonLength = (items: readonly Item[]): number => jsonText(items).length;

/** The core's limit of a read's contents, as JSON text. */
const limit = 16 << 20;

/**
 * The length that the core compares with its limit. A UTF-16 unit takes at most six as JSON text.
 * If six times the units stay below the limit, it is about the number of units; otherwise it is the
 * exact length as JSON text.
 */
export function lengthForLimit(items: readonly Item[]): number {
  let units = 0;
  for (let i = 0; i < items.length; i++) {
    const { uri, mimeType = "", text = "", blob = "" } = items[i]!;
    units += 50 + uri.length + mimeType.length + text.length + blob.length;
  }
  return 6 * units < limit ? units : jsonLength(items);
}

/** The contents as JSON text. */
export function jsonText(items: readonly Item[]): string {
  let text = "[";
  for (let i = 0; i < items.length; i++) text += (i ? "," : "") + stringify(items[i]);
  return text + "]";
}
