/**
 * Transports to a gateway: a core elsewhere that the page feeds (js/link/channel.ts). Either the page connects by
 * itself, with a WebSocket to a `pagewire serve`; or a debugger, such as that gateway, has handed over a function to
 * post frames with.
 *
 * With a `ticket` the gateway is one of the page's service (`pagewire node`): the page then says first who it is, with
 * a note of its own that is no frame of the link, and goes elsewhere when the gateway asks it to.
 *
 * The page asks for nothing and needs no gateway: while none is there it goes on trying, more and more rarely. It loads
 * no wasm for one. What stands in the way is said on the console once, with what to do about it (the browser adds a
 * line of its own for each attempt, which nobody can keep it from).
 */
import { uncurry } from "../page/basics.ts";
import type { Cores } from "./cores.ts";
import { error, exec, listen, messageData, microtask, parse, stringify, unlisten } from "./intrinsics.ts";
import { loopback } from "./loopback.ts";
import type { Revisions } from "./revisions.ts";
import { fetchTicket, type Ticket } from "./ticket.ts";
import type { Gateway, Early, Post } from "../page/shared.ts";
import { type Call, type Channel, channel } from "../link/channel.ts";

// Node 20, where the core's tests import this file with the others, has no WebSocket.
const { WebSocket = class {} as never, MutationObserver, setTimeout, clearTimeout, Date, URL } = globalThis;
const { min, random } = Math;
const { info } = console;

/** Pauses between attempts, in ms: the first is this long, each further one twice as long, up to a bound. */
const firstPause = 100;
/**
 * The bound, for a page that is seen, while there was a gateway within the last minute; later; and for a hidden page.
 */
const bounds = { soon: 2_000, later: 10_000, hidden: 15_000 };
const soonFor = 60_000;
/** Attempts in vain before the console is told: a gateway that is started anew, or taken over, is there before. */
const patience = 4;
/** A connection that was shorter than this counts as an attempt in vain. */
const minLife = 2_000;
/** Within this time the pages of a node that ends connect anew. */
const moveWithin = 2_000;
/** Least time between two notes about the title: some pages count in it. */
const titlePause = 500;

const tabKey = "pagewire:tab";

export function gateway({ settings, emit }: Early, { epoch }: Revisions, cores: Cores) {
  const send = uncurry(WebSocket.prototype.send) as (socket: WebSocket, text: string) => void;
  const close = uncurry(WebSocket.prototype.close) as (socket: WebSocket) => void;
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
  /** Whether it knows that there is one, and that nobody can say whose. */
  let warned = false;
  /** Why no attempt is made: for good, or until the page is back. */
  let over = false;
  let away = false;
  let title = "";
  let focused = 0;
  let tab = "";
  /** The link over it. */
  let link: Channel | undefined;
  /** How often we have connected: of two links of one document the later one counts. */
  let dials = 0;
  let fetching = false;
  let renewal = 0;
  /** How many renewals in turn had no ticket. */
  let misses = 0;

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
    if (socket || fetching || over || away) return;
    if (settings.ticket) withTicket();
    else open();
  }

  /**
   * Fetches a ticket, for the connection that is open when it comes, else for a new one: meanwhile the old one may have
   * ended, and connect() waits for this. Where there is none it is tried again.
   */
  function withTicket(): void {
    fetching = true;
    void (async () => {
      let ticket: Ticket | undefined;
      try {
        ticket = await fetchTicket(new URL(settings.ticket!, document.baseURI).href);
      } catch (cause) {
        if (!told && !over) {
          told = true;
          report(`no ticket for the gateway from ${settings.ticket}: ${(cause as Error).message}. It is tried again.`);
        }
      }
      fetching = false;
      if (ticket) misses = 0;
      if (over || away) return;
      if (ticket && socket) present(socket, ticket);
      else if (ticket) open(ticket);
      else if (socket) renew(min(bounds.hidden, bounds.soon * 2 ** misses++) * (0.75 + random() / 2));
      else again(true);
    })();
  }

  /** Says who the page is, and again before that ends. */
  function present(ours: WebSocket, ticket: Ticket): void {
    send(ours, stringify({ type: "pagewire:ticket", ticket: ticket.text }));
    renew(ticket.renew);
  }

  function renew(pause: number): void {
    const ours = socket;
    clearTimeout(renewal);
    renewal = setTimeout(() => {
      if (socket === ours && !fetching) withTicket();
    }, pause);
  }

  /** The gateway goes away: there are others, which its pages are not to ask all at once. */
  function move(): void {
    drop();
    failures = 0;
    clearTimeout(timer);
    timer = setTimeout(connect, random() * moveWithin);
  }

  function open(ticket?: Ticket): void {
    clearTimeout(timer);
    let ours: WebSocket;
    try {
      ours = socket = new WebSocket(url, "pagewire.v1");
    } catch (cause) {
      return give(`no connection to a gateway at ${url}: ${(cause as Error).message}`);
    }
    let opened = 0;
    const live = () => socket === ours;
    const ended = (failed?: boolean) => {
      if (!live()) return;
      drop();
      if (opened && Date.now() - opened > minLife) {
        failures = 0;
        contact = Date.now();
      }
      again(failed);
    };
    drop = () => {
      socket = undefined;
      drop = () => {};
      link?.hear(null);
      link = undefined;
      close(ours);
    };
    listen(ours, "open", () => {
      opened = Date.now();
      told = false;
      if (ticket) present(ours, ticket);
      else if (!warned) {
        warned = true;
        info(`pagewire: connected to ${url}. A page cannot tell whose program answers there.`);
      }
      title = document.title;
      const home = cores.home((reason) => {
        if (!live()) return;
        link = undefined;
        // What it says of itself is no accident: it would say it again.
        report(`the link with the gateway at ${url} has ended: ${reason}.`);
        ended(true);
      });
      const about = { epoch, tab, frame: frame(), title, url: location.href, focused: focus(), dial: ++dials };
      link = channel(
        home.source,
        (text) => live() && send(ours, text),
        about,
        (given) => {
          if (given.tab) remember((tab = given.tab)); // ours is a duplicated tab's
        },
      );
      home.adopt(link);
    });
    listen(ours, "message", (event: MessageEvent) => {
      if (!live()) return;
      const said = parse(messageData(event) as string) as Call[] & { type?: unknown };
      if (said?.type === undefined) link?.hear(said);
      else if (said.type === "pagewire:elsewhere") move();
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
      `no connection to a gateway at ${url}.` +
        (settings.ticket ? "" : " Is 'pagewire serve' running?") +
        (settings.ticket || exec(loopback, location.hostname)
          ? ""
          : ` It must have been started with '--allow-origin ${origin}', and the browser must let the page reach this device: allow it in the prompt, or in the site's settings ("local network access").`) +
        " It is tried again.",
    );
  }

  function hangUp(): void {
    clearTimeout(timer);
    clearTimeout(renewal);
    drop();
  }

  const focus = () => (focused = document.hasFocus() ? Date.now() : focused);
  const onfocus = () => link?.note({ focused: focus() });
  const onvisible = () => {
    if (document.visibilityState !== "hidden") connect();
  };
  let titleTimer = 0;
  const observer = new MutationObserver(() => {
    if (titleTimer || document.title === title) return;
    titleTimer = setTimeout(() => {
      titleTimer = 0;
      if (document.title !== title) link?.note({ title: (title = document.title) });
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

  /** Takes a core elsewhere that comes by itself, with a function to post frames with. */
  function take(post: Post): void {
    const home = cores.home(() => (post.hear = undefined as never));
    const core = channel(home.source, post, { epoch });
    post.hear = core.hear;
    home.adopt(core);
  }

  /** Connects to a gateway. */
  function dial(given: Gateway): void {
    if (typeof given === "function") return take(given);
    const { prerendering } = document as { prerendering?: boolean };
    // Nobody sees it yet.
    if (prerendering) return listen(document, "prerenderingchange", () => dial(given), { once: true });
    let wanted: URL | undefined;
    try {
      wanted = new URL(given, document.baseURI);
    } catch {}
    if (wanted?.protocol !== "ws:" && wanted?.protocol !== "wss:")
      return report(`'${given}' is not the URL of a gateway: it must be like ws://127.0.0.1:7433`);
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
