/**
 * A core elsewhere: the page's side of the link as text frames, whatever carries them. bridge/link/LINK.md describes
 * it; the other side is package link.
 *
 * What travels: frames. Calls go together, at the turn's end; contents go at once, behind what was said before. Who
 * must answer: the core, each frame within 10 ms; one that is silent for `patience` is dead. Touches wait for that
 * answer, so that a page that notifies without end fills no buffer. On close: `hear(null)`, or `stop`.
 *
 * It never looks at what a call is about, and never waits: it keeps at most one touch a URI, and what was said in this
 * turn.
 */
import { microtask, SafeMap, stringify } from "../late/intrinsics.ts";
import { type Core, linkVersion, type Source, Status } from "./link.ts";

export type Call = readonly unknown[];

/** What a page says of itself: the member `about` of LINK.md. */
export interface About {
  epoch?: string;
  tab?: string;
  frame?: string;
  title?: string;
  url?: string;
  focused?: number;
  dial?: number;
}

/** A core elsewhere, and what is beside the calls of a core. */
export interface Channel extends Core {
  /** Takes what a frame of the core says; null where the transport has ended. */
  hear(calls: readonly Call[] | null): void;
  /** Says what has changed of what the page said of itself. */
  note(about: About): void;
  /** Ends the link; with `gone` the page will not come back. */
  leave(gone: boolean): void;
}

/** The version of Pagewire; js/build puts it in. */
declare const PAGEWIRE_VERSION: string;

/** Milliseconds. A core answers at once; a machine that is busy, or was asleep, is given time. */
const patience = 10_000;

// The page may patch its own.
const { setTimeout, clearTimeout } = globalThis;

/** Begins a link. `post` carries frames to the core; `welcomed` is told what its hello says. */
export function channel(
  page: Source,
  post: (frame: string) => void,
  about: About,
  welcomed: (about: About) => void = () => {},
): Channel {
  let live = true;
  let queue: Call[] = [];
  const touched = new SafeMap<string, number>();
  /** Runs while something has been said that is not answered. */
  let watch: ReturnType<typeof setTimeout> | undefined;
  let flushing = false;

  const say = (frame: string) => {
    post(frame);
    watch ??= setTimeout(() => end("it does not answer"), patience);
  };
  const flush = () => {
    flushing = false;
    if (!live) return;
    touched.forEach((revision, uri) => (queue[queue.length] = ["touch", uri, revision]));
    touched.clear();
    const calls = queue;
    queue = [];
    if (calls.length) say(stringify(calls));
  };
  const soon = () => {
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
    soon();
  };

  /** Performs one call of the core. An unknown name means that the other end is not a core of ours. */
  const obey = (call: Call): void => {
    // Not by destructuring, for the same reason as below.
    const name = call[0] as string;
    const a = call[1] as never;
    const b = call[2] as never;
    const c = call[3] as never;
    const d = call[4] as never;
    switch (name) {
      case "read":
        return page.read(a, b, c, d);
      case "callTool":
        return page.callTool(a, b, c, d);
      case "end":
        return page.end(a);
      case "watched":
        return page.watched(a, b);
      case "report":
        return page.report(a);
      case "hello":
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

  say(stringify([["hello", linkVersion, PAGEWIRE_VERSION, about]]));

  return {
    carries: true,
    hear(calls) {
      if (!calls) return end("the connection has ended");
      clearTimeout(watch);
      watch = undefined;
      for (let i = 0; live && i < calls.length; i++) obey(calls[i]!); // by index: the iterator of arrays is the page's
      if (touched.size) soon();
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
      if (!watch) soon();
    },
    setTools: (tools) => call("setTools", tools),
    complete(id, status, revision, _size, detail) {
      if (status !== Status.ok) return call("complete", id, status, revision, detail);
      flush();
      if (live) say(`=${id} ${revision} ${detail}`);
    },
    stop() {
      flush();
      quit();
    },
  };
}
