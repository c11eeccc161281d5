/**
 * What a transport to the gateway does: it passes the frames of each document that it is given, for as long as there
 * are both the document and a gateway. nativemessaging.ts and socket.ts are the two transports.
 */
import type { Live } from "./documents.ts";

/**
 * What a transport is at: agents can come; it looks for a gateway; there is none that it could find, which says why.
 */
export interface State {
  readonly transport: "native messaging" | "WebSocket";
  readonly connected: boolean;
  readonly why: string;
}

export interface Transport {
  readonly state: State;
  /** Takes the documents that there are now, and lets go of those that are not among them. */
  serve(documents: readonly Live[]): void;
  close(): void;
}

/**
 * How the gateway knows a tab, also after a reload, and after the worker was suspended: but not after the browser
 * ended.
 */
export type TabName = (tab: number) => string;

/** Brings `served` in line with the documents that there are now. */
export function follow<S>(
  served: Map<number, S>,
  documents: readonly Live[],
  add: (document: Live) => S,
  remove: (one: S) => void,
): void {
  const ids = new Set(documents.map(({ id }) => id));
  for (const [id, one] of served) {
    if (ids.has(id)) continue;
    served.delete(id);
    remove(one);
  }
  for (const document of documents) if (!served.has(document.id)) served.set(document.id, add(document));
}

/** The link's last frame for a document that will not come back: the gateway waits for one that has only gone. */
export const farewell = '[["bye",true]]';

/**
 * Frames that wait for the gateway to take them, in UTF-16 code units: of one document, which may answer several reads;
 * of all.
 */
const maxWaiting = 40 << 20;
const maxWaitingAll = 128 << 20;
/** What a document may always have waiting. */
const little = 1 << 20;

/** Why a document has too much waiting, or "". `all` gives what the others have. */
export function tooMuch(waiting: number, all: () => number): string {
  if (waiting <= little || (waiting <= maxWaiting && all() <= maxWaitingAll)) return "";
  return "its frames come faster than the gateway takes them";
}
