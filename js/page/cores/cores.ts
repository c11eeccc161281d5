/**
 * The cores that the page layer feeds, any number at once: one on the page or in its worker, and
 * one for each transport to a core elsewhere. Each core has its own calls and watched URIs, and
 * dies alone.
 *
 * The registry sees one core (`shared.core`), which stands for all of them. Page code runs in
 * microtasks, never on a core's stack. Nothing is queued for a future core: when it comes, it gets
 * all present registrations.
 */
import { type Core, type PortSource, type Source, Status } from "../../link/link.ts";
import { lengthForLimit } from "../resources/contents.ts";
import { exposes, failure } from "../common/refusal.ts";
import { error, microtask, SafeAbortController, SafeMap, stringify } from "../common/intrinsics.ts";
import { pageTools } from "../tools/pagetools.ts";
import { copiesOf, describe, type Reading, readsOf } from "../resources/reads.ts";
import type { Revisions } from "../resources/revisions.ts";
import type { Early } from "../early/shared.ts";

/** A call of a core, from `read` or `callTool` to `end`. */
interface Call {
  /** The URI that is read; "" for a tool. */
  readonly uri: string;
  reading?: Reading;
  /** Starts the tool, once the core says so. */
  start?: ((call: Call) => void) | undefined;
  /** Gives the call up. `unheard`: the core may not have had the answer. */
  stop(unheard?: boolean): void;
  /** The members of a tool's result, as JSON text. */
  members?: string;
}

/** How many calls that were left are kept, and for how long, in ms. */
const maxLeft = 1000;
const leftFor = 600_000;
const repeated =
  "The tool was not run: the same call began earlier, and nobody waited for its result. Its outcome is unknown: look at the page. To run the tool once more, call it again.";

/** One core's part of the page layer. */
export interface Attachment {
  /** The page, as that core sees it. */
  readonly source: Source;
  /** Takes the core, and gives it the page's resources and tools. */
  adopt(core: Core): void;
  /** Gives the core up: its calls end, and it gets no further ones. */
  detach(): void;
  /**
   * The contents or the result that the page holds for a call, for a message to an agent in the
   * page.
   */
  held(call: number): { readonly text: string } | { readonly contents: readonly object[] };
}

export type Cores = ReturnType<typeof coresOf>;

export function coresOf(early: Early, revisions: Revisions) {
  const { shared, settings } = early;
  const { stats, entries } = shared;
  const reads = readsOf(early, revisions);
  interface Member {
    core: Core;
    /** Passes a change on, if it matters to the core. */
    touch(key: string): void;
    thaw(): void;
  }
  /** The cores that are adopted and live. `shared.core` is set exactly while there is one. */
  const members = new SafeMap<number, Member>();
  /** The number of the last attachment. */
  let last = 0;
  /**
   * Calls that had begun when their core ended them, by name and arguments, and when: a second try
   * is told once.
   */
  const left = new SafeMap<string, number>();
  /** Watched URI to the number of cores that watch it. */
  const watched = new SafeMap<string, number>();

  const each = (call: (member: Member) => void) => members.forEach(call);
  const tools = pageTools(early, revisions, () => each(({ core }) => core.setTools(tools.told(core.carries))));

  /** All cores, as the registry sees them. */
  const all = {
    register: (descriptor: string) => each(({ core }) => core.register(descriptor)),
    unregister: (uri: string) => each(({ core }) => core.unregister(uri)),
    touch: (key: string) => each((member) => member.touch(key)),
    stop: () => each(({ core }) => core.stop()),
  };

  const count = (uri: string, by: number) => {
    const now = (watched.get(uri) ?? 0) + by;
    if (now) watched.set(uri, now);
    else watched.delete(uri);
    stats.watched = watched.size;
  };

  /**
   * Attaches a core, which then calls the returned `source`. `dead` is called once, if the core
   * dies.
   */
  function attach(
    dead: (reason: string) => void,
    ports?: Pick<PortSource, "send" | "closed">,
  ): Attachment & { source: PortSource } {
    const id = ++last;
    /** From `adopt` on. */
    let core: Core | undefined;
    /** Why it was given up or has died, for good; "" before that. Then it has no calls. */
    let over = "";
    /** Calls that the core has not ended, by its ids. */
    const calls = new SafeMap<number, Call>();
    /** URIs that the core watches. `watched` counts each once. */
    const watching = new SafeMap<string, boolean>();
    /** URI to the number of calls that read it. Its changes during a read go to the core, too. */
    const reading = new SafeMap<string, number>();

    const forget = (call: number): Call | undefined => {
      const known = calls.get(call);
      if (!known) return;
      calls.delete(call);
      const left = (reading.get(known.uri) ?? 1) - 1;
      if (left) reading.set(known.uri, left);
      else reading.delete(known.uri);
      return known;
    };
    const begin = (
      id: number,
      uri: string,
      start: (call: Call) => void,
      stop: (call: Call, unheard?: boolean) => void,
    ) => {
      const call: Call = { uri, start, stop: (unheard) => stop(call, unheard) };
      calls.set(id, call);
      reading.set(uri, (reading.get(uri) ?? 0) + 1);
    };
    const start = (id: number) => {
      const call = calls.get(id);
      const start = call?.start;
      if (!call || !start) return;
      call.start = undefined;
      void (async () => {
        await 0; // cheaper than queueMicrotask, which calls back through the browser's bindings
        if (calls.get(id) === call) start(call); // it may have ended within the turn
      })();
    };

    const source: PortSource = {
      read(id, key, uri, params) {
        if (over) return;
        begin(
          id,
          uri,
          async (call) => {
            const read = (call.reading = reads.read(key, uri, params));
            const { status, contents, cause } = await read.outcome;
            if (calls.get(id) !== call || !core) return;
            const text = contents && core.carries ? read.text() : "";
            const size = text ? text.length : contents ? lengthForLimit(contents) : 0;
            const detail = contents ? text : exposes(settings) ? describe(cause) : "";
            core.complete(id, status, read.revision, size, detail);
          },
          (call) => call.reading?.leave(),
        );
        start(id);
      },
      callTool(id, name, args, unless, sent) {
        if (over) return;
        const abort: AbortController = new SafeAbortController();
        const key = name + " " + args;
        let begun = false;
        begin(
          id,
          "",
          async (call) => {
            const revision = revisions.now();
            const again = Date.now() - (left.get(key) ?? 0) < leftFor;
            left.delete(key);
            begun = !again && !tools.onlyReads(name);
            const ran = again
              ? { text: stringify(failure(repeated)) }
              : await tools.run(name, args, unless, abort.signal, core?.carries);
            if ("stale" in ran) begun = false;
            if (calls.get(id) !== call || !core) return;
            if ("stale" in ran) return core.complete(id, Status.stale, revision, 0, stringify(ran.stale));
            const { text } = ran;
            call.members = text.slice(1, -1);
            core.complete(id, Status.ok, revision, text.length, core.carries ? text : "");
          },
          (call, unheard) => {
            const runs = call.members === undefined;
            if (left.size >= maxLeft) left.clear();
            if (begun && (runs || unheard)) left.set(key, Date.now());
            if (runs) microtask(() => abort.abort());
          },
        );
        core!.starting(id, sent);
      },
      start,
      end: (id, unheard) => forget(id)?.stop(unheard),
      watched(uri, on) {
        if (over || watching.has(uri) === on) return;
        if (on) watching.set(uri, true);
        else watching.delete(uri);
        count(uri, on ? 1 : -1);
        // A core elsewhere gets the present revision, so that it misses no change. A core in the
        // page misses none.
        if (on && core?.carries) core.touch(uri, revisions.of(uri));
      },
      report: (message) => over || error("pagewire: " + message),
      send: (port, message, call, hole) => over || ports?.send(port, message, call, hole),
      closed: (port, reason) => over || ports?.closed(port, reason),
      dead(reason) {
        if (over) return;
        detach(reason || "for an unknown reason");
        dead(over);
      },
    };

    function detach(why: string): void {
      if (over) return;
      over = why;
      members.delete(id);
      if (!members.size) shared.core = undefined;
      watching.forEach((_, uri) => count(uri, -1));
      watching.clear();
      calls.forEach((_, call) => forget(call)!.stop(true));
    }

    return {
      source,
      adopt(given) {
        if (over) return;
        core = given;
        const matters = (key: string) =>
          watching.has(key) || reading.has(key) || ((watching.size > 0 || reading.size > 0) && revisions.isWide(key));
        members.set(id, {
          core: given,
          touch: (key) => matters(key) && given.touch(key, revisions.at(key)),
          thaw: () => watching.forEach((_, uri) => given.touch(uri, revisions.of(uri))),
        });
        shared.core = all;
        if (given.carries) tools.prepare(); // late.ts does it for a core in the page
        entries.forEach(({ descriptor }) => over || given.register(descriptor));
        if (tools.told(given.carries)) return given.setTools(tools.told(given.carries));
        // The list of no tools says that this is all that the page offers.
        if (given.carries)
          void (async () => {
            await tools.listed();
            if (!over && !tools.told(true)) given.setTools("[]");
          })();
      },
      detach: () => detach("it was given up"),
      held(call) {
        const known = calls.get(call);
        if (known?.members !== undefined) return { text: known.members };
        return { contents: copiesOf(known?.reading?.contents() ?? []) };
      },
    };
  }

  return {
    attach,
    tools,
    reads,
    /** The document was frozen: tells each core that its watched URIs may have changed. */
    thaw: () => each((member) => member.thaw()),
  };
}
