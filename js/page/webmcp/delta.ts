/**
 * The difference between two texts, in the formats of the gateway's (bridge/gateway/live/delta): a
 * JSON Patch (RFC 6902) if both are JSON, or a unified diff without its header; nothing if neither
 * is shorter than the text itself. It decodes, unlike the gateway. So JSON whose numbers may not
 * survive that gets a diff alone. Its time is bounded: a part that is nested too deeply, or an array
 * that is too different, is replaced as a whole.
 */
import { isArray } from "../common/binary.ts";
import { isObject, uncurry } from "../early/basics.ts";
import { exec, parse, slice, stringify } from "../common/intrinsics.ts";

/** Exactly one of the two. */
export type Delta = { readonly patch?: readonly object[]; readonly diff?: string };

const maxDepth = 64;
/** How far apart two texts may be, in lines, before they count as having nothing more in common. */
const maxApart = 50;

const { hasOwn, keys } = Object;
const { min } = Math;
const indexOf = uncurry(String.prototype.indexOf);

export function difference(before: string, after: string): Delta | undefined {
  const patch = patchOf(before, after);
  const size = patch ? stringify(patch).length : after.length;
  const diff = indexOf(after, "\n") < 0 && patch ? "" : diffOf(before, after, min(size, after.length));
  return diff ? { diff } : patch && size < after.length ? { patch } : undefined;
}

function patchOf(before: string, after: string): object[] | undefined {
  // Numbers that a double may not hold as they are written.
  if (exec(/\d{16}|\de[+-]?\d{3}/i, after)) return;
  let a: unknown;
  let b: unknown;
  try {
    a = parse(before);
    b = parse(after);
  } catch {
    return;
  }
  if (!isObject(a) || !isObject(b) || isArray(a) !== isArray(b)) return;
  const patch: object[] = [];
  compare(a, b, "", patch);
  return patch;
}

type Parts = { readonly [name: string]: unknown };

/** Appends the operations that make `a` equal to `b`, and returns whether there were any. */
function compare(a: unknown, b: unknown, path: string, patch: object[], depth = 0): boolean {
  const from = patch.length;
  const op = (op: string, path: string, value?: unknown) =>
    void (patch[patch.length] = op === "remove" ? { op, path } : { op, path, value });
  if (isArray(a) && isArray(b) && depth < maxDepth) {
    const same = (i: number, j: number) => !compare(a[i], b[j], "", [], depth + 1);
    let start = 0;
    let end = 0;
    while (start < min(a.length, b.length) && same(start, start)) start++;
    while (end < min(a.length, b.length) - start && same(a.length - 1 - end, b.length - 1 - end)) end++;
    let i = start;
    for (; i < min(a.length, b.length) - end; i++) compare(a[i], b[i], `${path}/${i}`, patch, depth + 1);
    for (let j = a.length - end; j-- > i; ) op("remove", `${path}/${j}`);
    for (; i < b.length - end; i++) op("add", `${path}/${i}`, b[i]);
  } else if (isObject(a) && isObject(b) && !isArray(a) && !isArray(b) && depth < maxDepth) {
    const at = (name: string) => {
      let token = "";
      for (let i = 0; i < name.length; i++) token += name[i] === "~" ? "~0" : name[i] === "/" ? "~1" : name[i];
      return `${path}/${token}`;
    };
    const before = keys(a);
    for (let i = 0; i < before.length; i++) if (!hasOwn(b, before[i]!)) op("remove", at(before[i]!));
    const after = keys(b);
    for (let i = 0; i < after.length; i++) {
      const name = after[i]!;
      if (!hasOwn(a, name)) op("add", at(name), (b as Parts)[name]);
      else compare((a as Parts)[name], (b as Parts)[name], at(name), patch, depth + 1);
    }
  } else if (a !== b) op("replace", path, b);
  return patch.length > from;
}

/** Each line has its end. */
function linesOf(text: string): string[] {
  const lines: string[] = [];
  for (let at = 0; at < text.length; ) {
    const end = indexOf(text, "\n", at) + 1 || text.length;
    lines[lines.length] = slice(text, at, end);
    at = end;
  }
  return lines;
}

/** A unified diff of fewer than `most` characters, or "". */
function diffOf(before: string, after: string, most: number): string {
  const a = linesOf(before);
  const b = linesOf(after);
  let out = "";
  const put = (mark: string, line: string) => {
    out += mark + line + (line[line.length - 1] === "\n" ? "" : "\n\\ No newline at end of file\n");
  };
  const span = (at: number, n: number) => (n === 1 ? `${at + 1}` : `${n ? at + 1 : at},${n}`);
  for (let i = 0, j = 0; i < a.length || j < b.length; ) {
    if (i < a.length && a[i] === b[j]) {
      i++;
      j++;
      continue;
    }
    // The nearest lines that are equal again; without any, the texts differ to their ends.
    let x = a.length - i;
    let y = b.length - j;
    search: for (let apart = 1; apart <= maxApart; apart++)
      for (let k = 0; k <= apart; k++)
        if (i + apart - k < a.length && j + k < b.length && a[i + apart - k] === b[j + k]) {
          x = apart - k;
          y = k;
          break search;
        }
    const above = !x && i ? 1 : 0; // an insertion has the line before, which says where it is
    out += `@@ -${span(i - above, x + above)} +${span(j - above, y + above)} @@\n`;
    if (above) put(" ", a[i - 1]!);
    for (; x; x--) put("-", a[i++]!);
    for (; y && out.length < most; y--) put("+", b[j++]!);
    if (out.length >= most) return "";
  }
  return out;
}
