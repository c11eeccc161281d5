/**
 * Revisions count the changes that the page has announced. Each key has the revision of its last
 * change. Cores map them to clocks of their own; the tools of resourcetools.ts return them as they
 * are.
 *
 * They begin when this part is loaded, since nothing was read before. A key whose revision is no
 * longer known (after 20,000 keys, or after the document was frozen) counts as changed.
 */
import { exec, parse, SafeMap, slice } from "../common/intrinsics.ts";
import type { shared as Shared } from "../early/shared.ts";

/** Keys whose last change is remembered; beyond that all count as changed. */
const maxKeys = 20_000;

const { max, random } = Math;

/** The keys that have changed, and whether the list has. */
export interface Changes {
  readonly updated: readonly string[];
  readonly listChanged?: boolean;
}

export const isTemplate = (key: string): boolean => exec(/\{/, key) !== null;

export type Revisions = ReturnType<typeof revisionsOf>;

export function revisionsOf(shared: typeof Shared) {
  const { entries } = shared;
  /** Distinguishes this document's revisions from those before a reload. */
  const epoch = Date.now().toString(36) + ((random() * 1296) | 0).toString(36);
  /**
   * Tells the document's cores that they have the same document: 128 random bits. Agents never see
   * it, unlike `epoch`, because who knows it can pass for the document.
   */
  const id = epoch + crypto.randomUUID();
  /** The present revision: it only grows. */
  let count = 0;
  /** The revision as of which everything counts as changed. */
  let floor = 0;
  /** Key, or "" for the list, to the revision of its last change. */
  let changes = new SafeMap<string, number>();
  /** The keys of `changes` of which the page has announced a change since they were registered. */
  let announced = new SafeMap<string, boolean>();

  const forget = () => {
    changes = new SafeMap();
    announced = new SafeMap();
    floor = count;
  };

  return {
    epoch,
    id,
    /**
     * Counts a change of a key, or with "" of the list. With `relisted` the key was registered or
     * withdrawn: then it has changed too, but what is registered next may announce nothing.
     */
    changed(key: string, relisted?: boolean): void {
      count++;
      if (changes.size >= maxKeys) forget();
      changes.set(key, count);
      if (relisted) announced.delete(key);
      else announced.set(key, true);
    },
    /** Counts all as changed: the document was frozen. */
    frozen(): void {
      count++;
      forget();
    },
    now: () => count,
    at,
    /** Whether the page announces changes of the key. */
    knows: (key: string) => announced.has(key),
    /** The changes since a revision: of `keys` or, if that is empty, of all keys and the list. */
    since(from: number, keys: readonly string[]): Changes | undefined {
      const updated: string[] = [];
      const add = (key: string, revision: number) => {
        if (key && revision > from) updated[updated.length] = key;
      };
      for (let i = 0; i < keys.length; i++) add(keys[i]!, of(keys[i]!, from));
      const all = !keys.length;
      if (all) changes.forEach((_, key) => add(key, at(key)));
      if (all && floor > from) entries.forEach((_, key) => changes.has(key) || add(key, floor));
      const listChanged = all && at("") > from;
      return updated.length || listChanged ? { updated, ...(listChanged && { listChanged }) } : undefined;
    },
    of,
    /** Whether a key answers for more than one URI: it is a template, or takes parameters. */
    isWide,
    /**
     * Whether a template, or a resource that takes parameters, may answer for a URI, judged by its
     * beginning.
     */
    mayAnswer(uri: string): boolean {
      let may = false;
      entries.forEach((_, key) => {
        may ||= covers(key, uri);
      });
      return may;
    },
  };

  /** The revision of a key, or with "" of the list. */
  function at(key: string): number {
    return max(changes.get(key) ?? 0, floor);
  }

  /**
   * The latest revision of the keys that answer for a URI: its own, and templates or resources that
   * take its parameters. `from` spares the comparison with those that have not changed since.
   */
  function of(uri: string, from = 0): number {
    let latest = max(at(uri), from);
    if (entries.has(uri)) return latest;
    changes.forEach((revision, key) => {
      if (revision > latest && covers(key, uri)) latest = revision;
    });
    return latest;
  }

  function isWide(key: string): boolean {
    const entry = entries.get(key);
    return entry !== undefined && (isTemplate(key) || exec(/"uriSchema":/, entry.descriptor) !== null);
  }

  /** Whether a key answers for a URI with its parameters, or did, if it was withdrawn. */
  function covers(key: string, uri: string): boolean {
    const brace = exec(/\{/, key);
    const head = brace ? slice(key, 0, brace.index) : `${key}?`;
    if (slice(uri, 0, head.length) !== head) return false;
    const entry = entries.get(key);
    return !entry || brace !== null || "uriSchema" in (parse(entry.descriptor) as object);
  }
}
