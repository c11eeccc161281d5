/**
 * Revisions: the count of the changes that the page has told, and of which keys. Cores map them to clocks of their own,
 * and the tools of resourcetools.ts give them out as they are.
 *
 * They begin when this part is loaded: before that nobody has read anything. What a key's revision cannot be said of
 * any more (after 20,000 keys, or after the document was frozen) counts as changed.
 */
import { exec, parse, SafeMap, slice } from "./intrinsics.ts";
import type { shared as Shared } from "../page/shared.ts";

/** Keys whose last change is remembered; beyond that all count as changed. */
const maxKeys = 20_000;

const { max, random } = Math;

export type Revisions = ReturnType<typeof revisionsOf>;

export function revisionsOf(shared: typeof Shared) {
  const { entries } = shared;
  /** So that a revision of another document, before a reload, is none of this one's. */
  const epoch = Date.now().toString(36) + ((random() * 1296) | 0).toString(36);
  let count = 0;
  /** The revision as of which everything counts as changed. */
  let floor = 0;
  /** Key, or "" for the list, to the revision that its last change made. */
  let changes = new SafeMap<string, number>();

  const forget = () => {
    changes = new SafeMap();
    floor = count;
  };

  return {
    epoch,
    /** Counts a change of a key, or with "" of the list. */
    changed(key: string): void {
      count++;
      if (changes.size >= maxKeys) forget();
      changes.set(key, count);
    },
    /** Counts all as changed: the document was frozen. */
    frozen(): void {
      count++;
      forget();
    },
    now: () => count,
    /** The revision of a key, or of the list. */
    at: (key: string) => max(changes.get(key) ?? 0, floor),
    /** Whether a change of the key has been told, so that there may be something to wait for. */
    knows: (key: string) => changes.has(key),
    each: (visit: (key: string) => void) => changes.forEach((_, key) => visit(key)),
    floor: () => floor,
    /**
     * The revision of whatever answers for a URI: its own, and that of the template or resource that takes its
     * parameters.
     */
    of(uri: string): number {
      let latest = max(changes.get(uri) ?? 0, floor);
      if (entries.has(uri)) return latest;
      changes.forEach((revision, key) => {
        if (revision > latest && covers(key, uri)) latest = revision;
      });
      return latest;
    },
    /** Whether more than one URI is answered for under a key: it is a template, or takes parameters. */
    isWide,
    /** Whether what is registered under a key may answer for a URI, as far as its beginning says. */
    covers,
  };

  function isWide(key: string): boolean {
    const entry = entries.get(key);
    return entry !== undefined && (exec(/\{/, key) !== null || exec(/"uriSchema":/, entry.descriptor) !== null);
  }

  function covers(key: string, uri: string): boolean {
    if (!isWide(key)) return false;
    const brace = exec(/\{/, key);
    const takes = !brace && (parse(entries.get(key)!.descriptor) as { uriSchema?: object }).uriSchema;
    if (!brace && !takes) return false; // the words stood in its description
    const head = brace ? slice(key, 0, brace.index) : `${key}?`;
    return slice(uri, 0, head.length) === head;
  }
}
