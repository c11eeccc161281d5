/**
 * A transport to the gateway: it passes the frames of the documents that it serves, while the document and a gateway
 * are there. nativemessaging.ts and socket.ts are the two transports.
 */
import type { Live } from "./documents.ts";

/** The state of a transport: connected, looking for a gateway, or without one for the reason `why`. */
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
 * The name of a tab, or of a window, at the gateway. It stays the same after a reload and after the worker was
 * suspended, but not after the browser has ended.
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

/** The link's last frame for a document that will not come back. Without it the gateway waits for the document. */
export const farewell = '[["bye",true]]';

/** The most that may wait for the gateway, in UTF-16 code units: of one document (several answers), and of all. */
const maxWaiting = 40 << 20;
const maxWaitingAll = 128 << 20;
/** The length that a document may always have waiting. */
const little = 1 << 20;

/** The reason if a document has too much waiting, or "". `all` gives the sum of all documents. */
export function tooMuch(waiting: number, all: () => number): string {
  if (waiting <= little || (waiting <= maxWaiting && all() <= maxWaitingAll)) return "";
  return "its frames come faster than the gateway takes them";
}
