/**
 * Transports to a gateway, which is a core elsewhere (js/link/channel.ts). Either the page itself
 * opens a WebSocket to a `pagewire serve`; or a debugger, such as that gateway, passes in a
 * function that posts frames.
 *
 * With a `ticket` the gateway belongs to the page's service (`pagewire-node`): the page then first
 * sends its ticket, in a message that is not a frame of the link, and connects to another node when
 * the gateway asks for that.
 *
 * Without a gateway the page goes on trying, more and more rarely. It loads no wasm for a gateway.
 * The console says once why there is no connection, and what to do. (The browser adds a line for
 * each attempt, which cannot be prevented.)
 */
import { report } from "../common/report.ts";
import type { Gateway, Early, Post } from "../early/shared.ts";
import { backoff, reconnect } from "../../link/reconnect.ts";
import { type Call, type Channel, channel } from "../../link/channel.ts";
import { loopback } from "../common/loopback.ts";
import { frame, ofDocument, titles } from "../../link/about.ts";
import type { Revisions } from "../resources/revisions.ts";
import { apply, exec, listen, messageData, parse, stringify } from "../common/intrinsics.ts";
import { fetchTicket, type Ticket } from "./ticket.ts";
import type { Cores } from "../cores/cores.ts";
import { uncurry } from "../early/basics.ts";

// Node 20, where the core's tests import this file with the others, has no WebSocket.
const { WebSocket = class {} as never, setTimeout, clearTimeout, Date, URL } = globalThis;
const { random } = Math;
const { info } = console;

/**
 * The longest pause between attempts, in ms: for a visible page until its `soonFor` failures, which
 * take a minute; for a visible page later; and for a hidden page.
 */
const bounds = { soon: 2_000, later: 10_000, hidden: 15_000 };
const soonFor = 36;
/** Failures before the console shows one: a gateway that restarts is back before that. */
const patience = 6;
/**
 * The time over which the pages of a node that ends or has died connect again, in ms: nodes take
 * 1,000 a second.
 */
const moveWithin = 2_000;

const tabKey = "pagewire:tab";

/** `until` has the signal that removes the listeners. */
export function gateway(early: Early, { id: epoch }: Revisions, cores: Cores, until?: AddEventListenerOptions) {
  const { settings } = early;
  const send = uncurry(WebSocket.prototype.send) as (socket: WebSocket, text: string) => void;
  const close = uncurry(WebSocket.prototype.close) as (socket: WebSocket) => void;
  /** The gateway that the page was given last; "" before that. */
  let url = "";
  /** The connection that is open, or being opened. */
  let socket: WebSocket | undefined;
  const loop = reconnect(connect, (failures) =>
    document.hidden ? bounds.hidden : failures < soonFor ? bounds.soon : bounds.later,
  );
  /** Whether the console has said that there is no gateway. */
  let told = false;
  /** Whether the console has said that the gateway's owner is unknown. */
  let warned = false;
  /**
   * No attempt is made: for good (`over`), or while the page is in the back/forward cache (`away`).
   */
  let over = false;
  let away = false;
  /** When the window had the focus last, in ms since 1970. */
  let focused = 0;
  /** The tab's id, as sessionStorage or the gateway has given it. */
  let tab = "";
  /** The link over the connection. */
  let link: Channel | undefined;
  /**
   * Counts the connections: if a document has two links, the gateway takes the one with the higher
   * number.
   */
  let dials = 0;
  /** Whether a ticket is being fetched: no other fetch or connection begins meanwhile. */
  let fetching = false;
  /** The timer of the next ticket. */
  let renewal = 0;
  /** Failed renewals of the ticket, in a row. */
  let misses = 0;

  const say = (message: string) => report(early, message);

  /** Reports an error that would recur, and makes no further attempt. */
  function giveUp(message: string): void {
    if (over) return;
    over = true;
    say(message);
    disconnect();
  }

  function connect(): void {
    loop.stop();
    if (socket || fetching || over || away) return;
    if (settings.ticket) withTicket();
    else open();
  }

  /**
   * Fetches a ticket, and sends it on the open connection, or opens one with it. (The connection
   * may end during the fetch; connect() does nothing before the fetch ends.) A fetch that fails is
   * repeated.
   */
  function withTicket(): void {
    fetching = true;
    void (async () => {
      let ticket: Ticket | undefined;
      try {
        ticket = await fetchTicket(new URL(settings.ticket!, ofDocument("baseURI")).href);
      } catch (cause) {
        if (!told && !over) {
          told = true;
          say(`no ticket for the gateway from ${settings.ticket}: ${(cause as Error).message}. It is tried again.`);
        }
      }
      fetching = false;
      if (ticket) misses = 0;
      if (over || away) return;
      if (ticket && socket) sendTicket(socket, ticket);
      else if (ticket) open(ticket);
      else if (socket) renew(backoff(bounds.soon, misses++, bounds.hidden));
      else retry(true);
    })();
  }

  /** Sends the ticket, and the next one before it expires. */
  function sendTicket(ours: WebSocket, ticket: Ticket): void {
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

  /**
   * The node shuts down: connects to another one, after a random pause so that its pages do not all
   * come at once.
   */
  function leaveNode(): void {
    closeSocket();
    loop.again(1 + random() * moveWithin);
  }

  /** Closes the connection that is open, or being opened. */
  function closeSocket(): void {
    const ours = socket;
    socket = undefined;
    link?.receive(null);
    link = undefined;
    if (ours) close(ours);
  }

  function open(ticket?: Ticket): void {
    let ours: WebSocket;
    try {
      ours = socket = new WebSocket(url, "pagewire.v1");
    } catch (cause) {
      return giveUp(`no connection to a gateway at ${url}: ${(cause as Error).message}`);
    }
    const live = () => socket === ours;
    const onEnd = (failed?: boolean) => {
      if (!live()) return;
      closeSocket();
      retry(failed);
    };
    listen(ours, "open", () => {
      loop.opened();
      told = false;
      if (ticket) sendTicket(ours, ticket);
      else if (!warned) {
        warned = true;
        info(`pagewire: connected to ${url}. A page cannot tell whose program answers there.`);
      }
      const attachment = cores.attach((reason) => {
        if (!live()) return;
        link = undefined;
        // The gateway has ended the link on purpose, and would do so again: the longest pause.
        say(`the link with the gateway at ${url} has ended: ${reason}.`);
        onEnd(true);
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
        attachment.source,
        (text) => live() && send(ours, text),
        about,
        (given) => {
          if (given.tab) remember((tab = given.tab)); // a duplicated tab has the id of the first
        },
      );
      attachment.adopt(link);
    });
    listen(ours, "message", (event: MessageEvent) => {
      if (!live()) return;
      const said = parse(messageData(event) as string) as Call[] & { type?: unknown };
      if (said?.type === undefined) link?.receive(said);
      else if (said.type === "pagewire:elsewhere") leaveNode();
    });
    listen(ours, "close", () => onEnd());
  }

  function retry(slowly?: boolean): void {
    if (over || away) return;
    const pause = slowly ? backoff(bounds.hidden, 0, bounds.hidden) : undefined;
    if (loop.again(pause, settings.ticket ? moveWithin : 0) >= patience && !told) reportNoGateway();
  }

  function reportNoGateway(): void {
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

  function disconnect(): void {
    loop.stop();
    clearTimeout(renewal);
    closeSocket();
  }

  const focus = () => (focused = apply(ofDocument("hasFocus"), document, []) ? Date.now() : focused);
  const onfocus = () => link?.note({ focused: focus() });
  const onvisible = () => {
    if (!document.hidden) connect();
  };
  const title = titles((now) => link?.note({ title: now }));
  // An open connection would keep the page out of the back/forward cache.
  const onpagehide = ({ isTrusted }: Event) => {
    if (!isTrusted) return; // a script's own: no pageshow follows
    away = true;
    disconnect();
  };
  const onpageshow = ({ persisted }: PageTransitionEvent) => {
    if (!persisted) return;
    away = false;
    connect();
  };
  const onviolation = ({ blockedURI, effectiveDirective }: SecurityPolicyViolationEvent) => {
    if (effectiveDirective === "connect-src" && new URL(blockedURI, url).host === new URL(url).host)
      giveUp(
        `this page's Content-Security-Policy keeps it from the gateway: its connect-src must have ${new URL(url).origin}.`,
      );
  };

  let frozen = false;
  const onfreeze = ({ type }: Event) => void (frozen = type === "freeze");

  /** Begins a link with a core that has passed in a function to post frames. */
  function linkBy(post: Post): void {
    const attachment = cores.attach(() => (post.receive = undefined as never));
    // As in dial.
    listen(document, "freeze", onfreeze, until);
    listen(document, "resume", onfreeze, until);
    const how = { slow: !!post.slow, frozen: () => frozen };
    const core = channel(attachment.source, post, { epoch }, undefined, how);
    post.receive = core.receive;
    attachment.adopt(core);
  }

  /** Connects to a gateway. */
  function dial(given: Gateway): void {
    if (typeof given === "function") return linkBy(given);
    const { prerendering } = document as { prerendering?: boolean };
    // A prerendered page may never be shown.
    if (prerendering) return listen(document, "prerenderingchange", () => dial(given), { once: true });
    let wanted: URL | undefined;
    try {
      wanted = new URL(given, ofDocument("baseURI"));
    } catch {}
    if (wanted?.protocol !== "ws:" && wanted?.protocol !== "wss:")
      return say(`'${given}' is not the URL of a gateway: it must be like ws://127.0.0.1:7433`);
    if (wanted.pathname === "/") wanted.pathname = "/page";
    if (wanted.href === url && !over) return;
    if (settings.origin === "null")
      return say("a page of no origin of its own, such as a sandboxed frame, cannot connect to a gateway");
    disconnect();
    url = wanted.href;
    tab ||= identify();
    over = told = false;
    // The browser adds each listener once, however often this runs.
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
      disconnect();
      title.stop();
    },
  };
}

/** The tab's id, which a reload keeps. */
function identify(): string {
  try {
    const known = sessionStorage.getItem(tabKey);
    if (known && exec(/^[A-Za-z0-9-]{8,64}$/, known)) return known;
  } catch {}
  const id = crypto.randomUUID();
  remember(id, true);
  return id;
}

/**
 * Stores the tab's id. Only the top document changes a stored id; a frame keeps a new id for
 * itself.
 */
function remember(id: string, shared?: boolean): void {
  try {
    if (shared || window === window.top) sessionStorage.setItem(tabKey, id);
  } catch {} // a page whose storage is blocked is a new tab with each reload
}
