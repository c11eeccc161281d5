/**
 * A core elsewhere: the page's side of the link as text frames, over any transport.
 * bridge/link/LINK.md describes the link; its other side is package link.
 *
 * What travels: frames. The calls of a turn go together at its end; contents go at once, after all
 * earlier calls. Answers: the core answers each frame within 10 ms; a core that is silent for
 * `patience` is dead. Touches wait for that answer, so that endless notifications fill no buffer.
 * On close: `receive(null)`, or `stop`.
 *
 * It never waits, and looks into no call: it keeps at most one touch a URI, and the calls of this
 * turn.
 */
import { microtask, SafeMap, stringify } from "../page/common/intrinsics.ts";
import { later, lateAfter, lateness, sinceStart } from "./lateness.ts";
import { type Core, linkVersion, type Source, Status } from "./link.ts";

export type Call = readonly unknown[];

/** Facts about a document: the member `about` of LINK.md. */
export interface About {
  epoch?: string;
  tab?: string;
  frame?: string;
  title?: string;
  url?: string;
  focused?: number;
  dial?: number;
  now?: number;
}

/** A core elsewhere, with three more methods. */
export interface Channel extends Core {
  /** Takes the calls of a frame of the core; null when the transport has ended. */
  receive(calls: readonly Call[] | null): void;
  /** Sends the facts that have changed to the core. */
  note(about: About): void;
  /** Ends the link; with `gone` the page will not come back. */
  leave(gone: boolean): void;
}

/** The version of Pagewire; js/build puts it in. */
declare const PAGEWIRE_VERSION: string;

/** In ms. A core answers at once, but its machine may be busy, or have been asleep. */
const patience = 10_000;

// The page may patch its own.
const { setTimeout, clearTimeout } = globalThis;

/**
 * Begins a link. `post` carries frames to the core, at once or, if `slow`, in a later task;
 * `welcomed` is called with the facts of its hello. While `frozen`, a frame of the core can come
 * although the page runs no tasks.
 */
export function channel(
  page: Source,
  post: (frame: string) => void,
  about: About,
  welcomed: (about: About) => void = () => {},
  { slow, frozen }: { readonly slow?: boolean; readonly frozen?: () => boolean } = {},
): Channel {
  let live = true;
  let queue: Call[] = [];
  const touched = new SafeMap<string, number>();
  /** When the oldest frame without an answer was sent; 0 if there is none. */
  let unanswered = 0;
  /** Runs while a frame is not answered, and on: a timer for each frame took 4 % of a read. */
  let watch: ReturnType<typeof setTimeout> | undefined;
  let flushing = false;
  const { now, sample, late, known } = lateness();
  const hello = now();
  /**
   * The calls for which the core was asked whether to start them: when, and how late the answer may
   * come, in ms.
   */
  const asked = new SafeMap<number, { readonly at: typeof hello; readonly most: number }>();

  const send = (frame: string) => {
    post(frame);
    unanswered ||= sinceStart() || 1; // a coarse clock begins at 0
    watch ??= setTimeout(check, patience);
  };
  const check = () => {
    watch = undefined;
    const left = unanswered + patience - sinceStart();
    if (unanswered && left <= 0) end("it does not answer");
    else if (unanswered) watch = setTimeout(check, left);
  };
  const flush = () => {
    flushing = false;
    if (!live) return;
    touched.forEach((revision, uri) => (queue[queue.length] = ["touch", uri, revision]));
    touched.clear();
    const calls = queue;
    queue = [];
    if (calls.length) send(stringify(calls));
  };
  const flushSoon = () => {
    if (flushing) return;
    flushing = true;
    microtask(flush);
  };
  const quit = () => {
    live = false;
    clearTimeout(watch);
  };
  const end = (reason: string) => {
    if (!live) return;
    quit();
    page.dead(reason);
  };
  const call = (...call: Call) => {
    queue[queue.length] = call;
    flushSoon();
  };

  /**
   * Starts a call that the core has sent, or allowed, at its time `sent`, or asks if that is longer
   * ago than `most`.
   */
  const start = (id: number, sent: number | undefined, most = lateAfter, next = lateAfter) => {
    if (!known()) return page.start(id);
    const begin = () => {
      if (!live) return;
      if (late(sent, most)) {
        asked.set(id, { at: now(), most: next });
        return call("starting", id);
      }
      call("started", id);
      if (!slow) return page.start(id);
      flush();
      later(() => live && page.start(id));
    };
    // A debugger's message comes at a breakpoint too, and in a frozen page. The one runs no
    // microtasks, the other no tasks.
    if (frozen?.()) later(begin);
    else microtask(begin);
  };

  /**
   * Performs one call of the core. An unknown name means that the other end is not a core of
   * Pagewire.
   */
  const perform = (call: Call): void => {
    // Not by destructuring: a page can have patched the iterator of arrays.
    const name = call[0] as string;
    const a = call[1] as never;
    const b = call[2] as never;
    const c = call[3] as never;
    const d = call[4] as never;
    const e = call[5] as never;
    switch (name) {
      case "read":
        return page.read(a, b, c, d);
      case "callTool":
        return page.callTool(a, b, c, d, e);
      case "start": {
        const question = asked.get(a);
        asked.delete(a);
        if (!question) return;
        sample(question.at, b);
        // The page may have stood still once more. If it is the network that is slow, a later
        // question gets through.
        return start(a, b, question.most, 2 * question.most);
      }
      case "end":
        asked.delete(a);
        return page.end(a, b);
      case "watched":
        return page.watched(a, b);
      case "report":
        return page.report(a);
      case "hello":
        if ((c as About).now !== undefined) sample(hello, (c as About).now!);
        return a === linkVersion
          ? welcomed(c)
          : end(
              `it speaks version ${a} of the link, and this page version ${linkVersion}: update the older of the two`,
            );
      case "refused":
        return end(a);
    }
    end(`it says '${name}', which is no call of version ${linkVersion} of the link`);
  };

  send(stringify([["hello", linkVersion, PAGEWIRE_VERSION, { ...about, starts: true }]]));

  return {
    carries: true,
    receive(calls) {
      if (!calls) return end("the connection has ended");
      unanswered = 0;
      for (let i = 0; live && i < calls.length; i++) perform(calls[i]!);
      if (touched.size) flushSoon();
    },
    note: (about) => call("note", about),
    leave(gone) {
      if (!live) return;
      call("bye", gone);
      flush();
      quit();
    },
    register: (descriptor) => call("register", descriptor),
    unregister: (uri) => call("unregister", uri),
    touch(uri, revision) {
      touched.set(uri, revision);
      if (!unanswered) flushSoon();
    },
    setTools: (tools) => call("setTools", tools),
    starting: (id, sent) => start(id, sent),
    complete(id, status, revision, _size, detail) {
      if (status !== Status.ok) return call("complete", id, status, revision, detail);
      flush();
      if (live) send(`=${id} ${revision} ${detail}`);
    },
    stop() {
      flush();
      quit();
    },
  };
}
