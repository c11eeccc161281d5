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
import { fetchTicket, type Ticket } from "./ticket.ts";
import { report } from "./report.ts";
import { uncurry } from "../page/basics.ts";
import type { Revisions } from "./revisions.ts";
import type { Gateway, Early, Post } from "../page/shared.ts";
import type { Cores } from "./cores.ts";
import { loopback } from "./loopback.ts";
import { frame, titles } from "../link/about.ts";
import { exec, listen, messageData, parse, stringify } from "./intrinsics.ts";
import { type Call, type Channel, channel } from "../link/channel.ts";
import { backoff, reconnect } from "../link/reconnect.ts";

// Node 20, where the core's tests import this file with the others, has no WebSocket.
const { WebSocket = class {} as never, setTimeout, clearTimeout, Date, URL } = globalThis;
const { random } = Math;
const { info } = console;

/**
 * The longest pause between attempts, in ms: for a page that is seen, until there have been so many failures, which
 * takes a minute; later; and for a hidden page.
 */
const bounds = { soon: 2_000, later: 10_000, hidden: 15_000 };
const soonFor = 34;
/** Attempts in vain before the console is told: a gateway that is started anew, or taken over, is there before. */
const patience = 4;
/** Within this time the pages of a node that ends connect anew. */
const moveWithin = 2_000;

const tabKey = "pagewire:tab";

/** `until` ends what is listened to. */
export function gateway(early: Early, { epoch }: Revisions, cores: Cores, until?: AddEventListenerOptions) {
  const { settings } = early;
  const send = uncurry(WebSocket.prototype.send) as (socket: WebSocket, text: string) => void;
  const close = uncurry(WebSocket.prototype.close) as (socket: WebSocket) => void;
  let url = "";
  /** What is open, or being opened. */
  let socket: WebSocket | undefined;
  const loop = reconnect(connect, (failures) =>
    document.visibilityState === "hidden" ? bounds.hidden : failures < soonFor ? bounds.soon : bounds.later,
  );
  /** Whether the console knows that there is none. */
  let told = false;
  /** Whether it knows that there is one, and that nobody can say whose. */
  let warned = false;
  /** Why no attempt is made: for good, or until the page is back. */
  let over = false;
  let away = false;
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

  const say = (message: string) => report(early, message);

  /** Something is wrong that trying again does not change. */
  function give(message: string): void {
    if (over) return;
    over = true;
    say(message);
    hangUp();
  }

  function connect(): void {
    loop.stop();
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
          say(`no ticket for the gateway from ${settings.ticket}: ${(cause as Error).message}. It is tried again.`);
        }
      }
      fetching = false;
      if (ticket) misses = 0;
      if (over || away) return;
      if (ticket && socket) present(socket, ticket);
      else if (ticket) open(ticket);
      else if (socket) renew(backoff(bounds.soon, misses++, bounds.hidden));
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
    loop.again(1 + random() * moveWithin);
  }

  /** Gives up what is open, or being opened. */
  function drop(): void {
    const ours = socket;
    socket = undefined;
    link?.hear(null);
    link = undefined;
    if (ours) close(ours);
  }

  function open(ticket?: Ticket): void {
    let ours: WebSocket;
    try {
      ours = socket = new WebSocket(url, "pagewire.v1");
    } catch (cause) {
      return give(`no connection to a gateway at ${url}: ${(cause as Error).message}`);
    }
    const live = () => socket === ours;
    const ended = (failed?: boolean) => {
      if (!live()) return;
      drop();
      again(failed);
    };
    listen(ours, "open", () => {
      loop.opened();
      told = false;
      if (ticket) present(ours, ticket);
      else if (!warned) {
        warned = true;
        info(`pagewire: connected to ${url}. A page cannot tell whose program answers there.`);
      }
      const home = cores.home((reason) => {
        if (!live()) return;
        link = undefined;
        // What it says of itself is no accident: it would say it again.
        say(`the link with the gateway at ${url} has ended: ${reason}.`);
        ended(true);
      });
      const about = {
        epoch,
        tab,
        frame: frame(),
        title: title.now(),
        url: location.href,
        focused: focus(),
        dial: ++dials,
      };
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

  function again(slowly?: boolean): void {
    if (over || away) return;
    if (loop.again(slowly ? bounds.hidden : undefined) >= patience && !told) tell();
  }

  function tell(): void {
    told = true;
    const { origin } = settings;
    say(
      `no connection to a gateway at ${url}.` +
        (settings.ticket ? "" : " Is 'pagewire serve' running?") +
        (settings.ticket || exec(loopback, location.hostname)
          ? ""
          : ` It must have been started with '--allow-origin ${origin}', and the browser must let the page reach this device: allow it in the prompt, or in the site's settings ("local network access").`) +
        " It is tried again.",
    );
  }

  function hangUp(): void {
    loop.stop();
    clearTimeout(renewal);
    drop();
  }

  const focus = () => (focused = document.hasFocus() ? Date.now() : focused);
  const onfocus = () => link?.note({ focused: focus() });
  const onvisible = () => {
    if (document.visibilityState !== "hidden") connect();
  };
  const title = titles((now) => link?.note({ title: now }));
  // An open connection would keep the page out of the back/forward cache.
  const onpagehide = () => {
    away = true;
    hangUp();
  };
  const onpageshow = ({ persisted }: PageTransitionEvent) => {
    if (!persisted) return;
    away = false;
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
      return say(`'${given}' is not the URL of a gateway: it must be like ws://127.0.0.1:7433`);
    if (wanted.pathname === "/") wanted.pathname = "/page";
    if (wanted.href === url && !over) return;
    if (settings.origin === "null")
      return say("a page of no origin of its own, such as a sandboxed frame, cannot connect to a gateway");
    hangUp();
    url = wanted.href;
    tab ||= identify();
    over = told = false;
    // Each is added once, however often we come here.
    listen(window, "focus", onfocus, until);
    listen(window, "pagehide", onpagehide, until);
    listen(window, "pageshow", onpageshow, until);
    listen(document, "visibilitychange", onvisible, until);
    listen(document, "securitypolicyviolation", onviolation, until);
    title.start();
    connect();
  }

  return {
    dial,
    shutDown(): void {
      over = true;
      hangUp();
      title.stop();
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
