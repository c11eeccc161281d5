/**
 * The core of a page layer that the gateway has injected: the link of js/core/link.ts over a CDP binding. The other side is
 * bridge/gateway/cdp/injected.go.
 *
 * What travels: to the gateway, calls as JSON text behind the letter l, an array of arrays of a name and its arguments;
 * the contents that a read or a tool gave, behind k, the call's number and a colon. From it, such arrays of calls as
 * values. Who must answer: the gateway, within 10 ms, whatever it is told; a core that hears nothing for `patience` is dead.
 * Touches wait for that answer, so that a page that notifies without end does not fill the binding. On close: the gateway says
 * null, or a new one comes.
 */
import { type Core, type Page, type Start, Status } from "../core/link.ts";
import { microtask, SafeMap, SafePromise, stringify } from "../page/intrinsics.ts";

type Post = (text: string) => void;
type Call = readonly unknown[];

/** Milliseconds. The gateway answers at once; a machine that is busy, or was asleep, is given time. */
const patience = 10_000;

// The page may patch its own.
const { setTimeout, clearTimeout, Error } = globalThis;

/** The gateway's binding, while there is one. */
let gateway: Post | undefined;
/** Takes what the gateway says. */
let receive = (_calls: readonly Call[]): void => {};
/** Ends the core that is live. */
let kill = (_reason: string): void => {};
/** Those who wait for a gateway. */
let waiting: (() => void)[] = [];

/** Connects the page layer with a gateway. The result takes what that says; null says that it goes. */
export function connect(post: Post): (calls: readonly Call[] | null) => void {
  gateway = post;
  kill("another gateway has come");
  const come = waiting;
  waiting = [];
  for (let i = 0; i < come.length; i++) come[i]!();
  return (calls) => {
    if (gateway !== post) return;
    if (calls) return receive(calls);
    gateway = undefined;
    kill("the gateway has gone");
  };
}

/** Starts a core, once there is a gateway. */
export const start: Start = async (page: Page): Promise<Core> => {
  if (!gateway) {
    await new SafePromise<void>((resolve, reject) => {
      waiting[waiting.length] = resolve;
      setTimeout(() => reject(new Error("the gateway that has injected Pagewire is not connected")), patience);
    });
  }
  const post = gateway!;
  let live = true;
  let queue: Call[] = [];
  const touched = new SafeMap<string, true>();
  /** Runs while something has been said that is not answered. */
  let watch: ReturnType<typeof setTimeout> | undefined;
  let flushing = false;

  const say = (text: string) => {
    post(text);
    watch ??= setTimeout(() => end("the gateway does not answer"), patience);
  };
  const flush = () => {
    flushing = false;
    if (!live) return;
    touched.forEach((_, uri) => (queue[queue.length] = ["touch", uri]));
    touched.clear();
    const calls = queue;
    queue = [];
    if (calls.length) say("l" + stringify(calls));
  };
  const soon = () => {
    if (flushing) return;
    flushing = true;
    microtask(flush);
  };
  const end = (reason: string) => {
    if (!live) return;
    live = false;
    clearTimeout(watch);
    page.dead(reason);
  };
  const call = (...call: Call) => {
    queue[queue.length] = call;
    soon();
  };

  kill = end;
  receive = (calls) => {
    clearTimeout(watch);
    watch = undefined;
    for (let i = 0; live && i < calls.length; i++) {
      const call = calls[i]!; // by index: the iterator of arrays is the page's
      (page[call[0] as keyof Page] as (...args: unknown[]) => void)(call[1], call[2], call[3], call[4]);
    }
    if (touched.size) soon();
  };

  return {
    carries: true,
    register: (descriptor) => call("register", descriptor),
    unregister: (uri) => call("unregister", uri),
    touch(uri) {
      touched.set(uri, true);
      if (!watch) soon();
    },
    open: (port) => call("open", port),
    receive: (port, message) => call("receive", port, message),
    writable: (port, on) => call("writable", port, on),
    close: (port) => call("close", port),
    setTools: (tools) => call("setTools", tools),
    complete(id, status, _size, detail) {
      if (status !== Status.ok) return call("complete", id, status, detail);
      flush();
      say(`k${id}:${detail}`);
    },
    stop() {
      flush();
      live = false;
      clearTimeout(watch);
    },
  };
};
