/**
 * What callers have been given. Nobody has an identity in a page. So a revision that comes with a
 * result stands for all that its caller has been given until then: who gives it back is that
 * caller. A revision from another document, or one that is no longer kept, stands for nothing:
 * its caller gets whole contents.
 */
import { exec, SafeMap, slice } from "../common/intrinsics.ts";
import type { Revisions } from "../resources/revisions.ts";

/** What a caller was given of a resource, or of the part at a pointer. */
export interface Version {
  readonly uri: string;
  readonly pointer: string | undefined;
  /** The count of changes when it was read. */
  readonly revision: number;
  /** The count of changes up to which the caller was told that it had changed. */
  readonly told?: number;
  /** The text, until younger ones need its place. Contents that are no single text have none. */
  readonly kept: { text?: string | undefined };
}

/** A caller, as its revision says. */
export interface Caller {
  /** The count of changes of its revision; -1 if that is none of this document. */
  readonly from: number;
  /** The number of its memory; 0 without one. */
  readonly id: number;
  readonly seen: Map<string, Version>;
}

/** At most so many memories are kept, of so many versions each. */
const maxMemories = 256;
const maxVersions = 64;
/** UTF-16 code units of all texts, and of one. */
const maxTexts = 4 << 20;
const maxText = 1 << 18;

export const keyOf = (uri: string, pointer: string | undefined): string =>
  pointer === undefined ? uri : `${uri} ${pointer}`; // a URI has no space

export type Memories = ReturnType<typeof memoriesOf>;

export function memoriesOf(revisions: Revisions) {
  const head = `${revisions.epoch}-`;
  /** The number of a memory to the memory, oldest first. A memory never changes. */
  const memories = new SafeMap<number, Map<string, Version>>();
  let last = 0;
  /** The texts, oldest first, by numbers from `oldest` on. `size` is the sum of their lengths. */
  const texts = new SafeMap<number, Version["kept"]>();
  let newest = 0;
  let oldest = 0;
  let size = 0;

  return {
    /** The caller to whom a revision was given. */
    caller(since: unknown): Caller {
      const text = typeof since === "string" && slice(since, 0, head.length) === head ? slice(since, head.length) : "";
      const match = exec(/^(\d{1,15})(?:-(\d{1,15}))?$/, text);
      const from = match && +match[1]! <= revisions.now() ? +match[1]! : -1;
      const id = from < 0 ? 0 : +(match![2] ?? 0);
      const seen = memories.get(id);
      return { from, id: seen ? id : 0, seen: seen ?? new SafeMap() };
    },
    /** A version of what was just read. */
    version(uri: string, pointer: string | undefined, revision: number, text: string | undefined): Version {
      const kept: Version["kept"] = {};
      if (text !== undefined && text.length <= maxText) {
        kept.text = text;
        size += text.length;
        texts.set(newest++, kept);
        for (; size > maxTexts; oldest++) {
          const old = texts.get(oldest)!;
          size -= old.text!.length;
          old.text = undefined;
          texts.delete(oldest);
        }
      }
      return { uri, pointer, revision, kept };
    },
    /** The revision of a result at a count of changes, by which its caller gets `given`. */
    revision({ id, seen }: Caller, count: number, given: readonly Version[]): string {
      if (given.length) {
        const memory: Map<string, Version> = new SafeMap();
        const add = (version: Version) => {
          const key = keyOf(version.uri, version.pointer);
          memory.delete(key); // the latest is the last
          memory.set(key, version);
        };
        seen.forEach(add);
        for (let i = 0; i < given.length; i++) add(given[i]!);
        let many = memory.size - maxVersions;
        if (many > 0) memory.forEach((_, key) => many-- > 0 && memory.delete(key));
        memories.set((id = ++last), memory);
        memories.delete(last - maxMemories);
      }
      return head + count + (id ? `-${id}` : "");
    },
    /** The versions that the caller was given, and whose resource has changed unknown to it. */
    news({ seen }: Caller): Version[] {
      const news: Version[] = [];
      seen.forEach((version) => {
        const { uri, revision, told = 0 } = version;
        const at = revisions.of(uri);
        if (at > revision && at > told) news[news.length] = version;
      });
      return news;
    },
  };
}
