/**
 * What callers have been given. Nobody has an identity in a page. So a revision that comes with a
 * result stands for all that its caller has been given until then: who gives it back is that
 * caller. A revision of another document, or one that is no longer kept, stands for nothing: its
 * caller gets whole contents.
 */
import { exec, SafeMap } from "../common/intrinsics.ts";
import type { Revisions } from "../resources/revisions.ts";

/** What a caller was given of a resource, or of the part at a pointer. */
export interface Given {
  readonly uri: string;
  readonly pointer?: unknown;
  /** The count of changes when it was read. */
  readonly revision: number;
  /** Only of contents that are a single text. */
  readonly text?: string | undefined;
}

/** The last of what a caller was given; the others follow by `before`. */
export interface Seen extends Given {
  /** It is unique, and never used again. */
  readonly id: number;
  readonly before: Seen | undefined;
}

/** Beyond so many, or so many UTF-16 code units of their texts, all is forgotten. */
const maxSeen = 1_000;
const maxTexts = 4 << 20;

export type Memories = ReturnType<typeof memoriesOf>;

export function memoriesOf({ epoch, now, of }: Revisions) {
  /** By their ids. `size` is the length of all their texts. */
  const known = new SafeMap<number, Seen>();
  let last = 0;
  let size = 0;

  return {
    /** The count of changes in a revision, -1 if it is none of this document, and what it stands for. */
    caller(since: unknown): { readonly from: number; readonly seen: Seen | undefined } {
      const text = typeof since === "string" ? since : "";
      const match = exec(/^(\w+)-(\d{1,15})-?(\d{0,15})$/, text);
      const from = match && match[1] === epoch && +match[2]! <= now() ? +match[2]! : -1;
      return { from, seen: from < 0 ? undefined : known.get(+match![3]!) };
    },
    /** The revision of a result at a count of changes, with which its caller gets `given`. */
    revision(seen: Seen | undefined, count: number, given?: Given): string {
      if (given) {
        const length = given.text?.length ?? 0;
        if ((size += length) > maxTexts || known.size >= maxSeen) {
          known.clear();
          size = length;
        }
        seen = { ...given, id: ++last, before: seen && known.get(seen.id) };
        known.set(last, seen);
      }
      return `${epoch}-${count}${seen ? `-${seen.id}` : ""}`;
    },
    find(seen: Seen | undefined, uri: string, pointer?: unknown): Seen | undefined {
      while (seen && (seen.uri !== uri || seen.pointer !== pointer)) seen = seen.before;
      return seen;
    },
    /** What a caller was given, and has changed since; not of the resource `besides`. */
    news(seen: Seen | undefined, besides = ""): Seen[] {
      const news: Seen[] = [];
      const names = new SafeMap<string, boolean>();
      names.set(besides, true);
      for (; seen; seen = seen.before) {
        if (!names.has(seen.uri) && of(seen.uri) > seen.revision) news[news.length] = seen;
        names.set(seen.uri, true);
      }
      return news;
    },
  };
}
