/**
 * The difference between two texts, in the formats of the gateway's (bridge/gateway/live/delta): a
 * JSON Patch (RFC 6902) if both are JSON, or a unified diff without its header; nothing if neither
 * is shorter than the text itself. It decodes, unlike the gateway. So JSON whose numbers may not
 * survive that gets no patch. Its time is bounded: what is nested too deeply, or too different, is
 * replaced as a whole.
 */
import { isArray } from "../common/binary.ts";
import { isObject, uncurry } from "../early/basics.ts";
import { exec, slice, stringify } from "../common/intrinsics.ts";
import { jsonOf } from "../common/refusal.ts";

type Parts = { readonly [name: string]: unknown };

const maxDepth = 64;
/** Lines or elements, of both sides, between two that are equal. */
const maxApart = 50;

const noEnd = "\n\\ No newline at end of file\n";

const { hasOwn, keys } = Object;
const { min } = Math;
const indexOf = uncurry(String.prototype.indexOf);

export function difference(
  before: string | undefined,
  after: string | undefined,
): { patch?: object[]; diff?: string } | undefined {
  if (before === undefined || after === undefined) return;
  const patch: object[] = [];
  const a = jsonOf(before);
  const b = jsonOf(after);
  // Numbers that a double may not hold as they are written.
  const exact = isObject(a) && isObject(b) && !exec(/\d{16}|\de[+-]?\d{3}/i, after);
  if (exact && isArray(a) === isArray(b)) compare(a, b, "", patch, 0);
  const size = patch.length ? stringify(patch).length : after.length;
  const diff = diffOf(before, after, min(size, after.length));
  return diff ? { diff } : size < after.length ? { patch } : undefined;
}

/** From index i of one list, x entries give way to y entries of the other, from index j. */
type Edit = { readonly i: number; readonly x: number; readonly j: number; readonly y: number };

/** Each edit ends where the lists are equal again at the nearest, or where both end. */
function editsOf(a: readonly string[], b: readonly string[]): Edit[] {
  const edits: Edit[] = [];
  for (let i = 0, j = 0; i < a.length || j < b.length; i++, j++) {
    if (i < a.length && a[i] === b[j]) continue;
    let x = a.length - i;
    let y = b.length - j;
    const most = min(maxApart, x + y);
    for (let apart = 1, k = 0; apart < most; k === apart ? (apart++, (k = 0)) : k++)
      if (i + apart - k < a.length && a[i + apart - k] === b[j + k]) {
        x = apart - k;
        y = k;
        break;
      }
    edits[edits.length] = { i, x, j, y };
    i += x;
    j += y;
  }
  return edits;
}

/** Appends the operations that make `a` equal to `b`. */
function compare(a: unknown, b: unknown, path: string, patch: object[], depth: number): void {
  const under = (name: string | number) => {
    let token = "";
    for (let i = 0, text = `${name}`; i < text.length; i++)
      token += text[i] === "~" ? "~0" : text[i] === "/" ? "~1" : text[i];
    return `${path}/${token}`;
  };
  const put = (op: string, name: string | number, more?: { value: unknown }) =>
    (patch[patch.length] = { op, path: under(name), ...more });
  if (depth > maxDepth || !isObject(a) || !isObject(b) || isArray(a) !== isArray(b)) {
    if (a !== b) patch[patch.length] = { op: "replace", path, value: b };
  } else if (isArray(a) && isArray(b)) {
    const edits = editsOf(textsOf(a), textsOf(b));
    // In reverse order, so that the indices before an edit stay valid.
    for (let at = edits.length; at--; ) {
      const { i, x, j, y } = edits[at]!;
      for (let k = x; k-- > y; ) put("remove", i + k);
      for (let k = 0; k < y; k++)
        if (k < x) compare(a[i + k], b[j + k], under(i + k), patch, depth + 1);
        else put("add", i + k, { value: b[j + k] });
    }
  } else {
    const before = keys(a);
    const after = keys(b);
    for (let i = 0; i < before.length; i++) if (!hasOwn(b, before[i]!)) put("remove", before[i]!);
    for (let i = 0; i < after.length; i++) {
      const name = after[i]!;
      const value = (b as Parts)[name];
      if (hasOwn(a, name)) compare((a as Parts)[name], value, under(name), patch, depth + 1);
      else put("add", name, { value });
    }
  }
}

function textsOf(list: readonly unknown[]): string[] {
  const texts: string[] = [];
  for (let i = 0; i < list.length; i++) texts[i] = stringify(list[i]);
  return texts;
}

/** Each line has its end. */
function linesOf(text: string): string[] {
  const lines: string[] = [];
  for (let at = 0, end = 0; at < text.length; at = end) {
    end = indexOf(text, "\n", at) + 1 || text.length;
    lines[lines.length] = slice(text, at, end);
  }
  return lines;
}

/** A unified diff of fewer than `most` characters, or "". */
function diffOf(before: string, after: string, most: number): string {
  const a = linesOf(before);
  const b = linesOf(after);
  const edits = editsOf(a, b);
  let out = "";
  const put = (mark: string, lines: string[], from: number, to: number) => {
    for (let i = from; i < to && out.length < most; i++)
      out += mark + lines[i] + (indexOf(lines[i]!, "\n") < 0 ? noEnd : "");
  };
  const span = (at: number, n: number) => (n === 1 ? at + 1 : `${n ? at + 1 : at},${n}`);
  for (let at = 0; at < edits.length; at++) {
    const { i, x, j, y } = edits[at]!;
    const above = !x && i ? 1 : 0; // an insertion has the line before: it says where it is
    out += `@@ -${span(i - above, x + above)} +${span(j - above, y + above)} @@\n`;
    put(" ", a, i - above, i);
    put("-", a, i, i + x);
    put("+", b, j, j + y);
  }
  return out.length < most ? out : "";
}
