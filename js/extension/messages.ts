/**
 * The messages between the extension's parts: the page layer (page.ts) and the relay over a
 * MessagePort, the relay and the worker over the browser's extension port, the worker and the
 * extension's own pages likewise.
 *
 * A page's messages are passed on and never acted upon. The worker learns from the browser which
 * page they are from.
 */
import type { Part } from "../shown/part.ts";

/** The event by which the relay hands its port over. */
export const handover = "pagewire:relay";

/**
 * The beginning of the message that starts a link. The rest names the link. No frame begins like
 * this.
 */
export const start = "start ";

/**
 * A message of the page layer: the number of things that the page offers, and the names of the
 * first ones, in lines. Texts are the confirmation of a start (the same message), then the frames
 * of that link (bridge/link/LINK.md) from its hello on, and "" when the page layer has ended the
 * link.
 */
export type Up = readonly [offers: number, names: string] | string;

/** How many resources and tools are named before they are allowed, and how long a name is. */
export const mostNames = 10;
export const longestName = 60;

/**
 * A message to the page layer: a start (a core is there), a frame of that core, or null (the core
 * has gone).
 */
export type Down = string | null;

/** The names of the extension's ports. */
export const fromRelay = "pagewire.page";
export const fromPanel = "pagewire.panel";
export const fromReader = "pagewire.shown";
export const fromPicker = "pagewire.pick";

/**
 * The relay's facts about its document. Offers, title and focus are sent again when they change.
 */
export interface Note {
  readonly offers?: number;
  readonly names?: string;
  readonly frame?: string;
  readonly url?: string;
  readonly title?: string;
  /** When the window had the focus last, in ms since 1970. */
  readonly focused?: number;
}

/**
 * A message of the worker to the relay: one for the page; "wait" (disconnect, and connect again
 * after `recheck`); or "alive", which does nothing at the relay: the browser does not suspend a
 * worker that sends.
 */
export type ToRelay = Down | "wait" | "alive";

/** The browser's one-time message to the relays of a tab: the user's permissions have changed. */
export const recheck = "pagewire:recheck";

/**
 * What a reader reads or watches: a part of the page with the user's rule, or without these the
 * whole.
 */
export interface PartRef {
  readonly name?: string;
  readonly part?: Part;
}

/**
 * A gateway's message to the worker, in the extension's world of a tab's document: the tab's key by
 * CDP.
 */
export interface Target {
  readonly target: string;
}

/**
 * A message of the worker to the reader of what a document shows (reader.ts): a wait is over, watch
 * or not, or read.
 */
export type ToReader =
  | { readonly wake: number }
  | (PartRef & { readonly watch: boolean })
  | (PartRef & { readonly read: number; readonly from: number; readonly links: boolean })
  | "stop";

/**
 * Its message: a wait for the worker's clock, or the answer of a read, without a text if there is
 * none to read.
 */
export type FromReader =
  | "changed"
  | { readonly changed: string }
  | { readonly wait: number; readonly ms: number }
  | { readonly call: number; readonly text?: string };
