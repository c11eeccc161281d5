/**
 * Says on the console that the page announces changes of a URI that nobody has registered, if it
 * resembles one that somebody has. No agent is told of such a change, and nothing else says so.
 */
import { exec, microtask, SafeMap, slice, warn } from "../common/intrinsics.ts";
import { uncurry } from "../early/basics.ts";
import type { Revisions } from "../resources/revisions.ts";
import type { shared as Shared } from "../early/shared.ts";

const lower = uncurry(String.prototype.toLowerCase);

export function lookalikes({ entries }: typeof Shared, revisions: Revisions) {
  /** URIs that were compared, or withdrawn: a component may be about to come back. */
  const known = new SafeMap<string, boolean>();
  /**
   * Comparisons that the document may still cost, some 30 ms. One withdrawn URI counts as five:
   * 20,000 are kept.
   */
  let left = 100_000;
  return (key: string, gone: boolean): void => {
    if (left <= 0 || entries.has(key) || known.has(key)) return;
    known.set(key, true);
    left -= gone ? 5 : entries.size + 1;
    if (gone) return;
    // Later, since the page may register it in this turn.
    microtask(() => {
      if (entries.has(key) || revisions.mayAnswer(key)) return;
      let like = "";
      entries.forEach((_, other) => {
        like ||= resembles(key, other) ? other : "";
      });
      if (like)
        warn(`pagewire: notifyResourceUpdated('${key}') tells no agent: it is not registered. Is it '${like}'?`);
    });
  };
}

/** The path without a last slash, and the query, in lower case: not the origin. */
const parts = (uri: string) => exec(/^[a-z]+:\/\/[^/]*(\/.*?)\/?(?:\?(.*))?$/, lower(uri));

/** Whether one is probably a slip of the other: in case, slash, origin, a query, or a letter. */
function resembles(uri: string, registered: string): boolean {
  const a = parts(uri);
  const b = parts(registered);
  if (!a || !b) return false;
  const path = a[1]!;
  const other = b[1]!;
  const template = exec(/^\/.*?\/(?=\{)/, other)?.[0];
  if (template) return slice(path, 0, template.length) === template;
  return path === other ? !a[2] || !b[2] || a[2] === b[2] : a[2] === b[2] && isSlip(path, other);
}

/**
 * Whether a letter is missing, another one, or swapped with the next, in a word of four or more. An
 * id is no word.
 */
function isSlip(a: string, b: string): boolean {
  let i = 0;
  while (i < a.length && a[i] === b[i]) i++;
  const word = exec(/[^/]*$/, slice(a, 0, i))![0] + exec(/^[^/]*/, slice(a, i))![0];
  const same = (inA: number, inB: number) => slice(a, i + inA) === slice(b, i + inB);
  const swapped = a[i] === b[i + 1] && a[i + 1] === b[i] && same(2, 2);
  return exec(/^[a-z]{4,}$/, word) !== null && (same(0, 1) || same(1, 0) || same(1, 1) || swapped);
}
