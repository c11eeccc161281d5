/**
 * dist/extension/relay.js: the content script between a document's page layer and the service
 * worker. It is in a world of its own, where the page's scripts cannot reach.
 *
 * For a page that offers nothing it sends nothing, so it does not wake the worker. For others it
 * wakes a worker that the browser has suspended, and the page layer tells the new core its
 * registrations. It never acts on the page's messages, and does not bound them. The worker must,
 * since an attacker in the page's process controls this script too.
 */
import { frame, titles } from "../link/about.ts";
import { reconnect } from "../link/reconnect.ts";
import { type Down, fromRelay, handover, type Note, recheck, start, type ToRelay, type Up } from "./messages.ts";
import { onClosed } from "./ports.ts";

/** The longest pause before the worker is called again, in ms. */
const longestPause = 15_000;

const { port1: page, port2 } = new MessageChannel();
// Synchronous, and before any script of the page: page.js, which is registered first, has taken the
// port when this returns.
const taken = !window.dispatchEvent(new MessageEvent(handover, { cancelable: true, ports: [port2] }));
if (taken) relay();
else page.close();

function relay(): void {
  let worker: chrome.runtime.Port | undefined;
  /** The number of things that the page offers, and the first names. */
  let offers = 0;
  let names = "";
  /** Whether the page layer has been told to start. */
  let started = false;
  /** The user has not allowed the site: only `recheck` changes that. */
  let waiting = false;
  let away = false;
  let over = false;
  const title = titles((now) => note({ title: now }));

  const toPage = (message: Down) => page.postMessage(message);
  const note = (members: Note) => worker?.postMessage(members);
  const focus = () => (document.hasFocus() ? Date.now() : 0);

  const stop = () => {
    if (started) toPage(null);
    started = false;
  };
  const lost = () => {
    worker = undefined;
    stop();
    if (!waiting && !away && !over && offers) loop.again();
  };
  const connect = () => {
    loop.stop();
    if (worker || away || over || !offers) return;
    let ours: chrome.runtime.Port;
    try {
      ours = worker = chrome.runtime.connect({ name: fromRelay });
    } catch {
      over = true; // the extension was removed, or replaced: this script is a leftover
      return;
    }
    waiting = false;
    ours.onMessage.addListener((message) => {
      if (worker === ours) receive(message as ToRelay);
    });
    onClosed(ours, () => worker === ours && lost());
    note({ offers, names, frame: frame(), url: location.href, title: title.now(), focused: focus() });
  };
  const loop = reconnect(connect, () => longestPause);
  const hangUp = () => {
    loop.stop();
    worker?.disconnect();
    worker = undefined;
    stop();
  };
  const receive = (message: ToRelay) => {
    if (message === "alive") return;
    if (message === "wait") {
      waiting = true;
      return hangUp();
    }
    if (message?.startsWith(start)) {
      started = true;
      loop.opened();
    }
    if (message === null) started = false;
    toPage(message);
  };

  page.onmessage = ({ data }: MessageEvent<Up>) => {
    if (typeof data === "string") {
      if (started) worker!.postMessage(data);
      return;
    }
    [offers, names] = data;
    if (worker) note({ offers, names });
    else if (!waiting) connect();
  };

  chrome.runtime.onMessage.addListener((message, sender) => {
    if (message !== recheck || sender.id !== chrome.runtime.id || worker) return;
    connect();
  });

  window.addEventListener("focus", () => note({ focused: Date.now() }));
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", title.start);
  else title.start();

  // The browser closes the port of a page that enters the back/forward cache. This ends the link
  // and the port before.
  window.addEventListener("pagehide", ({ isTrusted }) => {
    if (!isTrusted) return; // a script's own: no pageshow follows
    away = true;
    hangUp();
  });
  window.addEventListener("pageshow", ({ persisted }) => {
    if (!persisted) return;
    away = false;
    connect();
  });
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible" && !waiting) connect();
  });
}
