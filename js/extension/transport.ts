/**
 * A transport to the gateway: it passes the frames of the documents that it is given, as long as both the document and
 * a gateway are there. nativemessaging.ts and socket.ts are the two transports.
 */
import type { Live } from "./documents.ts";

/**
 * The state of a transport: connected, looking for a gateway, or without one for the reason `why`.
 */
export interface State {
  readonly transport: "native messaging" | "WebSocket";
  readonly connected: boolean;
  readonly why: string;
}

/** A document, for a transport. */
export type Linkable = Pick<Live, "id" | "origin" | "admitted" | "link" | "keepAlive">;

export interface Transport {
  readonly state: State;
  /** Serves these documents from now on, and no others. */
  serve(documents: readonly Linkable[]): void;
  close(): void;
}

/**
 * The name of a tab, or of a window, at the gateway: the same after a reload and after the worker was suspended, but not
 * after the browser ended.
 */
export type TabName = (id: number) => string;

/** Makes `served` match the documents. */
export function follow<S>(
  served: Map<number, S>,
  documents: readonly Linkable[],
  add: (document: Linkable) => S,
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
/** The length that a document may always have waiting. */
const little = 1 << 20;

/** The reason if a document has too much waiting, or "". `all` gives the sum of all documents. */
export function tooMuch(waiting: number, all: () => number): string {
  if (waiting <= little || (waiting <= maxWaiting && all() <= maxWaitingAll)) return "";
  return "its frames come faster than the gateway takes them";
}
