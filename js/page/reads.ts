/**
 * Reads: the page's callbacks, called for a core, and the contents that they gave, held until the core needs them no
 * more.
 *
 * Page code never runs on the core's stack: the callback, and the listeners of its signal, run in a microtask.
 * Whatever the page does there (throw, hang, withdraw the resource, notify) concerns that one call.
 */
import { Status } from "../core/link.ts";
import { type Item, jsonText, lengthForLimit, toContents } from "./contents.ts";
import { aborted, apply, error, microtask, parse, SafeAbortController, SafeMap } from "./late.ts";
import type { Ground } from "./shared.ts";

interface Call {
  readonly abort: AbortController;
  contents?: readonly Item[];
}

/** A copy by its members: of an object without a prototype, spreading takes 2 us. */
function copyOf({ uri, mimeType, text, blob }: Item): Item {
  if (text === undefined) return mimeType === undefined ? { uri, blob: blob! } : { uri, mimeType, blob: blob! };
  return mimeType === undefined ? { uri, text } : { uri, mimeType, text };
}

export type Reads = ReturnType<typeof readsOf>;

export function readsOf({ shared, own }: Ground) {
  const { stats, entries } = shared;
  /** Call number to call, from `read` to `end`. The numbers are the core's; they do not outlive it. */
  const calls = new SafeMap<number, Call>();

  /** Calls the page's callback. The result has contents exactly where the status is ok; else the console has the cause. */
  async function perform(
    key: string,
    uri: string,
    params: string,
    signal: AbortSignal,
  ): Promise<{ status: Status; contents?: readonly Item[]; cause?: unknown }> {
    let status = Status.failed;
    try {
      const entry = entries.get(key);
      if (!entry) throw new TypeError("it is no longer registered");
      const value = await apply(entry.read, undefined, [uri, { params: params ? parse(params) : {}, signal }]);
      status = Status.invalid;
      return { status: Status.ok, contents: await toContents(value, uri, entry.mimeType, own) };
    } catch (cause) {
      // What the page makes of a signal that is aborted is of no interest.
      if (!aborted(signal))
        error(
          `pagewire: reading '${uri}' ${status === Status.failed ? "failed" : "gave no resource contents"}:`,
          cause,
        );
      return { status, cause };
    }
  }

  /** Starts the read that the core asks for. */
  function begin(id: number, key: string, uri: string, params: string): void {
    const call: Call = { abort: new SafeAbortController() };
    calls.set(id, call);
    stats.reads++;
    stats.reading = calls.size;
    microtask(async () => {
      const live = () => calls.get(id) === call;
      if (!live()) return; // ended within the turn
      const { status, contents, cause } = await perform(key, uri, params, call.abort.signal);
      if (!live()) return;
      if (contents) call.contents = contents;
      const text = contents && shared.core?.carries ? jsonText(contents) : "";
      shared.core?.complete(
        id,
        status,
        text ? text.length : contents ? lengthForLimit(contents) : 0,
        contents ? text : describe(cause),
      );
    });
  }

  /** The core needs nothing more of a call. */
  function end(id: number): void {
    const call = calls.get(id);
    if (!calls.delete(id)) return; // a tool's
    stats.reading = calls.size;
    if (!call!.contents) microtask(() => call!.abort.abort());
  }

  return {
    perform,
    begin,
    end,
    /** The core is gone. */
    endAll: () => calls.forEach((_, id) => end(id)),
    /**
     * The contents held for a call: new objects for each receiver, for one may change what it was given. That costs
     * nothing per byte, since strings are shared; splicing text and parsing it again would cost 2 ms per MB and
     * receiver.
     */
    contentsOf(id: number): Item[] {
      const copies: Item[] = [];
      const contents = calls.get(id)?.contents ?? copies;
      for (let i = 0; i < contents.length; i++) copies[i] = copyOf(contents[i]!);
      return copies;
    },
  };
}

/** What a thrown value says, whatever it is: reading it may throw again. */
export function describe(cause: unknown): string {
  try {
    return `${(cause as Error | undefined)?.message ?? cause}`;
  } catch {
    return "an error that cannot be shown";
  }
}
