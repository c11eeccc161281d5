/**
 * Connects the page to a gateway: a WebSocket to a `pagewire serve` on the same machine, over which its agents read and
 * watch. One connection is one session of the page's core.
 *
 * The page asks for nothing and needs no gateway: while none is there it goes on trying, more and more rarely. The core
 * is started when a gateway has answered, not before. What stands in the way is said on the console once, with what to
 * do about it (the browser adds a line of its own for each attempt, which nobody can keep it from).
 *
 * Besides MCP the two exchange notes, objects whose type begins with "pagewire:": bridge/gateway/socket describes them.
 */
import { error, exec, listen, messageData, microtask, parse, slice, stringify, unlisten } from "./late.ts";
import { getter, uncurry } from "./basics.ts";
import type { Ground, Port, Sessions } from "./shared.ts";

// Node 20, where the core's tests import this file with the others, has no WebSocket.
const {
  WebSocket = class {
    get bufferedAmount() {
      return 0;
    }
  } as never,
  MutationObserver,
  setTimeout,
  clearTimeout,
  Date,
  URL,
} = globalThis;
const { min, random } = Math;

/** Pauses between attempts, in ms: the first is this long, each further one twice as long, up to a bound. */
const firstPause = 100;
/** The bound, for a page that is seen, while there was a gateway within the last minute; later; and for a hidden page. */
const bounds = { soon: 2_000, later: 10_000, hidden: 15_000 };
const soonFor = 60_000;
/** Attempts in vain before the console is told: a gateway that is started anew, or taken over, is there before. */
const patience = 4;
/** A connection that was shorter than this counts as an attempt in vain. */
const minLife = 2_000;
/** Unsent UTF-16 code units above which the core is told that the port is full, and below which that it is not. */
const highWater = 1 << 20;
const lowWater = 1 << 18;
/** Least time between two notes about the title: some pages count in it. */
const titlePause = 500;

const tabKey = "pagewire:tab";
const loopback = /^(localhost|.*\.localhost|127(\.\d+){3}|\[::1\])$/;

/** Made when a gateway is named for the first time. */
export function gateway({ settings, emit }: Ground, open: Sessions["open"]) {
  const send = uncurry(WebSocket.prototype.send) as (socket: WebSocket, text: string) => void;
  const close = uncurry(WebSocket.prototype.close) as (socket: WebSocket) => void;
  const buffered = getter(WebSocket.prototype, "bufferedAmount");
  let url = "";
  /** What is open, or being opened. */
  let socket: WebSocket | undefined;
  /** Gives that up. */
  let drop = (): void => {};
  let timer = 0;
  let failures = 0;
  /** When there was a gateway last, or we began to look for one. */
  let contact = 0;
  /** Whether the console knows that there is none. */
  let told = false;
  /** Why no attempt is made: for good, or until the page is back. */
  let over = false;
  let away = false;
  let title = "";
  let focused = 0;
  let tab = "";
  /** Says to the gateway what is new. */
  let note = (_members: object): void => {};

  function report(message: string): void {
    message = `pagewire: ${message}`;
    error(message);
    emit("error", { message });
  }

  /** Something is wrong that trying again does not change. */
  function give(message: string): void {
    if (over) return;
    over = true;
    report(message);
    hangUp();
  }

  function connect(): void {
    clearTimeout(timer);
    if (socket || over || away) return;
    let ours: WebSocket;
    try {
      ours = socket = new WebSocket(url, "pagewire.v1");
    } catch (cause) {
      return give(`no connection to a gateway at ${url}: ${(cause as Error).message}`);
    }
    let port: Port | undefined;
    let opened = 0;
    /** What came before the port was open. */
    let early: string[] | undefined = [];
    let full = false;
    const live = () => socket === ours;
    const write = (text: string) => {
      if (!live()) return;
      send(ours, text);
      if (!full && buffered(ours) > highWater) {
        full = true;
        port?.writable(false);
        drain();
      }
    };
    // There is no event for it.
    const drain = () =>
      setTimeout(() => {
        if (!live()) return;
        if (buffered(ours) > lowWater) return drain();
        full = false;
        port?.writable(true);
      }, 50);
    drop = () => {
      socket = undefined;
      note = drop = () => {};
      close(ours);
      port?.close("the connection to the gateway has ended");
    };
    const ended = (failed?: boolean) => {
      if (!live()) return;
      drop();
      if (opened && Date.now() - opened > minLife) {
        failures = 0;
        contact = Date.now();
      }
      again(failed);
    };
    listen(ours, "open", async () => {
      opened = Date.now();
      told = false;
      note = (members) => write(stringify({ type: "pagewire:page", ...members }));
      title = document.title;
      note({ tab, frame: frame(), title, url: location.href, focused: focus() });
      try {
        const session = await open({
          text: true,
          deliver: write,
          // A core that died is started again, but not at once: it may die again.
          closed: (_reason, failure) => ended(failure),
        });
        if (!live()) return session.close("the connection to the gateway has ended");
        port = session;
        const waiting = early!;
        early = undefined;
        for (let i = 0; i < waiting.length; i++) port.receive(waiting[i]!);
      } catch {
        ended(true); // it has been reported
      }
    });
    listen(ours, "message", (event: MessageEvent) => {
      const text = messageData(event) as string;
      if (slice(text, 0, 18) === '{"type":"pagewire:') hear(text);
      else if (early) early[early.length] = text;
      else port!.receive(text);
    });
    listen(ours, "close", () => ended());
  }

  /** Connects after a while; at once when a connection has ended that had lasted. */
  function again(slowly?: boolean): void {
    if (over || away) return;
    if (++failures >= patience && !told) tell();
    const hidden = document.visibilityState === "hidden";
    const bound = hidden ? bounds.hidden : Date.now() - contact < soonFor ? bounds.soon : bounds.later;
    const pause = slowly
      ? bounds.hidden
      : failures === 1
        ? 0
        : min(bound, firstPause * 2 ** (failures - 2)) * (0.75 + random() / 2);
    clearTimeout(timer);
    // A hidden page's timers are late by up to a second, so the first attempt takes none.
    if (pause) timer = setTimeout(connect, pause);
    else microtask(connect);
  }

  function tell(): void {
    told = true;
    const { origin } = settings;
    report(
      `no connection to a gateway at ${url}. Is 'pagewire serve' running?` +
        (exec(loopback, location.hostname)
          ? ""
          : ` It must have been started with '--allow-origin ${origin}', and the browser must let the page reach this device: allow it in the prompt, or in the site's settings ("local network access").`) +
        " It is tried again.",
    );
  }

  /** A note of the gateway: the page is a duplicated tab's, and gets an id of its own. */
  function hear(text: string): void {
    const { type, tab: given } = parse(text);
    if (type === "pagewire:tab") remember((tab = given));
  }

  function hangUp(): void {
    clearTimeout(timer);
    drop();
  }

  const focus = () => (focused = document.hasFocus() ? Date.now() : focused);
  const onfocus = () => note({ focused: focus() });
  const onvisible = () => {
    if (document.visibilityState !== "hidden") connect();
  };
  let titleTimer = 0;
  const observer = new MutationObserver(() => {
    if (titleTimer || document.title === title) return;
    titleTimer = setTimeout(() => {
      titleTimer = 0;
      if (document.title !== title) note({ title: (title = document.title) });
    }, titlePause);
  });
  // An open connection would keep the page out of the back/forward cache.
  const onpagehide = () => {
    away = true;
    hangUp();
  };
  const onpageshow = ({ persisted }: PageTransitionEvent) => {
    if (!persisted) return;
    away = false;
    failures = 0;
    connect();
  };
  const onviolation = ({ blockedURI, effectiveDirective }: SecurityPolicyViolationEvent) => {
    if (effectiveDirective === "connect-src" && new URL(blockedURI, url).host === new URL(url).host)
      give(
        `this page's Content-Security-Policy keeps it from the gateway: its connect-src must have ${new URL(url).origin}.`,
      );
  };

  /** Connects to the gateway that the settings name. */
  function dial(): void {
    const { prerendering } = document as { prerendering?: boolean };
    if (prerendering) return listen(document, "prerenderingchange", dial, { once: true }); // nobody sees it yet
    let wanted: URL | undefined;
    try {
      wanted = new URL(settings.gateway!, document.baseURI);
    } catch {}
    if (wanted?.protocol !== "ws:" && wanted?.protocol !== "wss:")
      return report(`'${settings.gateway}' is no gateway: its URL is like ws://127.0.0.1:7433`);
    if (wanted.pathname === "/") wanted.pathname = "/page";
    if (wanted.href === url && !over) return;
    if (settings.origin === "null")
      return report("a page of no origin of its own, such as a sandboxed frame, cannot connect to a gateway");
    hangUp();
    url = wanted.href;
    tab ||= identify();
    over = told = false;
    failures = 0;
    contact = Date.now();
    // Each is added once, however often we come here.
    listen(window, "focus", onfocus);
    listen(window, "pagehide", onpagehide);
    listen(window, "pageshow", onpageshow);
    listen(document, "visibilitychange", onvisible);
    listen(document, "securitypolicyviolation", onviolation);
    observer.observe(document.head ?? document, { childList: true, characterData: true, subtree: true });
    connect();
  }

  return {
    dial,
    shutDown(): void {
      over = true;
      hangUp();
      clearTimeout(titleTimer);
      observer.disconnect();
      unlisten(window, "focus", onfocus);
      unlisten(window, "pagehide", onpagehide);
      unlisten(window, "pageshow", onpageshow);
      unlisten(document, "visibilitychange", onvisible);
      unlisten(document, "securitypolicyviolation", onviolation);
    },
  };
}

/** What tells the tab from others, also after a reload. */
function identify(): string {
  try {
    const known = sessionStorage.getItem(tabKey);
    if (known && exec(/^[A-Za-z0-9-]{8,64}$/, known)) return known;
  } catch {}
  const id = crypto.randomUUID();
  remember(id, true);
  return id;
}

/** A frame has its tab's id for itself when it is given another one. */
function remember(id: string, shared?: boolean): void {
  try {
    if (shared || window === window.top) sessionStorage.setItem(tabKey, id);
  } catch {} // a page whose storage is blocked is a new tab with each reload
}

/** Where the document is among the frames of its tab: "" for the tab's own, "0.1" for the second frame in the first. */
function frame(): string {
  let path = "";
  for (let w: Window = window, above = w.parent; above && above !== w; w = above, above = w.parent) {
    let i = 0;
    while (i < above.length && above[i] !== w) i++;
    path = i + (path && "." + path);
  }
  return path;
}
