/**
 * Reads: the page's callbacks, and their results. Cores that read the same at once share one call
 * of the page's callback, as two agents of one core do.
 *
 * Page code never runs on a core's stack: the callback, and the listeners of its signal, run in a
 * microtask. If the page throws there, hangs, withdraws the resource or notifies, that affects only
 * this call.
 */
import { Status } from "../../link/link.ts";
import { type Item, jsonText, toContents } from "./contents.ts";
import { apply, error, microtask, parse, SafeAbortController, SafeMap } from "../common/intrinsics.ts";
import type { Revisions } from "./revisions.ts";
import type { Early } from "../early/shared.ts";

/**
 * The outcome of a read. It has contents exactly if the status is ok; otherwise the console has the
 * cause.
 */
export interface Outcome {
  readonly status: Status;
  readonly contents?: readonly Item[];
  readonly cause?: unknown;
}

/** One call of the page's callback, shared by the callers of `read`. */
export interface Reading {
  readonly outcome: Promise<Outcome>;
  /** The count of changes when the callback was called. */
  readonly revision: number;
  /** The contents, once they are there. */
  contents(): readonly Item[] | undefined;
  /** The contents as JSON text, which is made once. */
  text(): string;
  /** Each caller of `read` calls it once; with the last one the callback's signal aborts. */
  leave(): void;
}

export type Reads = ReturnType<typeof readsOf>;

export function readsOf({ shared, own }: Early, revisions: Revisions) {
  const { stats, entries } = shared;
  interface Running extends Reading {
    /** Callers that have not left. With the last one the read is aborted. */
    users: number;
    /** The registration that has the callback: the page may have registered the URI again. */
    readonly entry: unknown;
  }
  /** Reads that run, by key, URI and parameters. */
  const running = new SafeMap<string, Running>();

  async function perform(key: string, uri: string, params: string, abort: Abort): Promise<Outcome> {
    let status = Status.failed;
    try {
      const entry = entries.get(key);
      if (!entry) throw new TypeError("it is no longer registered");
      const value = await apply(entry.read, undefined, [uri, optionsOf(params, abort)]);
      status = Status.invalid;
      return { status: Status.ok, contents: await toContents(value, uri, entry.mimeType, own) };
    } catch (cause) {
      // After an abort a callback usually fails, so that is not logged.
      if (!abort.over)
        error(
          `pagewire: reading '${uri}' ${status === Status.failed ? "failed" : "gave no resource contents"}:`,
          cause,
        );
      return { status, cause };
    }
  }

  /**
   * Reads, or joins a running read. It does not join a read from before the last change, or from
   * before the URI was registered again: its contents may be older. It calls page code, so it must
   * not run on a core's stack.
   */
  function read(key: string, uri: string, params: string): Reading {
    const request = `${key} ${uri} ${params}`;
    const before = running.get(request);
    const entry = entries.get(key);
    if (before && before.entry === entry && before.revision >= revisions.of(uri)) {
      before.users++;
      return before;
    }
    const abort: Abort = { over: false };
    let contents: readonly Item[] | undefined;
    let text: string | undefined;
    const ended = async () => {
      const outcome = await perform(key, uri, params, abort);
      contents = outcome.contents;
      finish();
      return outcome;
    };
    const finish = () => {
      if (running.get(request) === reading) running.delete(request);
      stats.reading = running.size;
    };
    const reading: Running = {
      users: 1,
      entry,
      revision: revisions.now(),
      outcome: undefined as never,
      contents: () => contents,
      text: () => (text ??= contents ? jsonText(contents) : ""),
      leave() {
        if (--reading.users || contents) return;
        finish();
        abort.over = true;
        microtask(() => abort.controller?.abort());
      },
    };
    stats.reads++;
    running.set(request, reading);
    stats.reading = running.size;
    (reading as { outcome: Promise<Outcome> }).outcome = ended();
    return reading;
  }

  return { read };
}

/**
 * The state of a callback's signal. The controller is made when the callback asks for the signal.
 */
interface Abort {
  over: boolean;
  controller?: AbortController;
}

/**
 * The callback's second argument. Most callbacks never ask for the signal, and making it takes an
 * eighth of a read.
 */
const optionsOf = (params: string, abort: Abort) => ({
  params: params ? (parse(params) as object) : {},
  get signal(): AbortSignal {
    const { signal } = (abort.controller ??= new SafeAbortController());
    if (abort.over) abort.controller.abort();
    return signal;
  },
});

/** Copies member by member: spreading an object without a prototype takes 2 us. */
function copyOf({ uri, mimeType, text, blob }: Item): Item {
  if (text === undefined) return mimeType === undefined ? { uri, blob: blob! } : { uri, mimeType, blob: blob! };
  return mimeType === undefined ? { uri, text } : { uri, mimeType, text };
}

/**
 * New objects for each receiver, since receivers may change them. That costs nothing per byte,
 * since strings are shared; splicing text and parsing it again would cost 2 ms per MB and receiver.
 */
export function copiesOf(contents: readonly Item[]): Item[] {
  const copies: Item[] = [];
  for (let i = 0; i < contents.length; i++) copies[i] = copyOf(contents[i]!);
  return copies;
}

/**
 * The message of a thrown value. Any value can be thrown, and reading its message may throw again.
 */
export function describe(cause: unknown): string {
  try {
    return `${(cause as Error | undefined)?.message ?? cause}`;
  } catch {
    return "an error that cannot be shown";
  }
}
