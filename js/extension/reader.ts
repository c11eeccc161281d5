/**
 * dist/extension/shown.js: reads what a document shows, for the worker, in the extension's isolated
 * world. The browser runs it when an agent reads or watches the document, or the user looks at what
 * agents would read, and not before. It only reads, and does nothing without the worker. It never
 * learns who asks.
 */
import { shown, type View } from "../shown/shown.ts";
import { type FromReader, fromReader, type PartRef, type ToReader } from "./messages.ts";
import { viewOn } from "./picked.ts";
import { onClosed } from "./ports.ts";

/**
 * One for the document, however often this script runs in it: it remembers the passwords that a
 * button has shown.
 */
const world = globalThis as { pagewireReader?: () => void };
(world.pagewireReader ??= reader())();

/** Returns a function that connects with the worker. */
function reader(): () => void {
  let worker: chrome.runtime.Port | undefined;
  /** The worker keeps the time, since browsers slow the timers of hidden tabs down. */
  const waits = new Map<number, () => void>();
  let last = 0;
  const wake = (id: number) => {
    waits.get(id)?.();
    waits.delete(id);
  };
  const wait = (ms: number) =>
    new Promise<void>((done) => {
      const id = ++last;
      waits.set(id, done);
      if (worker) tell(worker, { wait: id, ms: Math.ceil(ms) });
      else setTimeout(wake, ms, id);
    });
  const tell = (port: chrome.runtime.Port, message: FromReader) => {
    if (port === worker) port.postMessage(message);
  };
  const page = shown(document, { now: () => performance.now(), wait });
  const views = new Map<string, { rule: string; view: View }>();
  const viewOf = ({ name = "", part }: PartRef): View => {
    const rule = JSON.stringify(part) ?? "";
    const before = views.get(name);
    if (before?.rule === rule) return before.view;
    before?.view.watch(false);
    const view = viewOn(page, () => worker && tell(worker, name ? { changed: name } : "changed"), part);
    views.set(name, { rule, view });
    return view;
  };

  const receive = async (port: chrome.runtime.Port, message: ToReader) => {
    if (message === "stop") return page.stop();
    if ("wake" in message) return wake(message.wake);
    let text: string | undefined;
    try {
      const view = viewOf(message);
      if ("watch" in message) return view.watch(message.watch);
      const { from, links } = message;
      text = await view.read({ from, links });
    } catch {} // a selector of a stored rule is none, or the page has made the look fail
    if ("read" in message) tell(port, text === undefined ? { call: message.read } : { call: message.read, text });
  };
  const connect = () => {
    const port = (worker = chrome.runtime.connect({ name: fromReader }));
    /** The worker follows the document, and has not ended that. */
    let followed = false;
    port.onMessage.addListener((message: ToReader) => {
      if (port !== worker) return;
      followed = message !== "stop" && ("watch" in message ? message.watch : followed);
      void receive(port, message);
    });
    onClosed(port, () => {
      if (port !== worker) return;
      worker = undefined;
      for (const { view } of views.values()) view.watch(false);
      for (const id of waits.keys()) wake(id);
      try {
        if (followed) connect(); // the browser has ended the worker, which starts, and runs this script again
      } catch {} // the extension was removed, or replaced
    });
  };
  return connect;
}
