/**
 * What the extension's parts say to each other: the page layer (page.ts) and the relay over a MessagePort, the relay
 * and the worker over the browser's extension port, the worker and the extension's own pages likewise.
 *
 * What a page says is passed on and never acted upon: where it comes from the worker learns from the browser.
 */

/** The event by which the relay hands its port over. */
export const handover = "pagewire:relay";

/**
 * What the page layer says: how many things the page offers, or, once it has been told to start, a text: "start", the
 * frames of a link (bridge/link/LINK.md) that begins with its hello, "" when it has ended that.
 */
export type Up = number | string;

/**
 * What the page layer hears: a core is there for it, and it is to begin a link; that core's frames; there is none any
 * more.
 */
export type Down = string | null;

/** The names of the extension's ports. */
export const fromRelay = "pagewire.page";
export const fromPanel = "pagewire.panel";

/** What the relay says of its document. Title and focus are said again when they change. */
export interface Note {
  readonly offers?: number;
  readonly frame?: string;
  readonly url?: string;
  readonly title?: string;
  /** When the window had the focus last, in ms since 1970. */
  readonly focused?: number;
}

/**
 * What the worker says to the relay, besides what goes to the page: "wait", to ask again when told to look; "alive", to
 * have said something, which keeps a worker from being suspended.
 */
export type ToRelay = Down | "wait" | "alive";

/** Told to the relays of a tab, by the browser's one-time message: what the user allows has changed. */
export const look = "pagewire:look";
