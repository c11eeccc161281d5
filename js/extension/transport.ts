/**
 * A transport to the gateway: it passes the frames of the documents that it serves, while the
 * document and a gateway are there. nativemessaging.ts and socket.ts are the two transports.
 */
/**
 * The state of a transport: connected, looking for a gateway, or without one for the reason `why`.
 */
export interface State {
  readonly transport: "native messaging" | "WebSocket";
  readonly connected: boolean;
  readonly why: string;
}

/** The reason while the browser knows no native host, and never did. */
export const notInstalled = "Pagewire isn't installed on this computer.";

/** Events of a link, for its other end. */
export interface LinkEvents {
  /** Takes a frame of the page. */
  frame(text: string): void;
  /**
   * The document or the user has ended the link. If the user has, the document is no longer
   * admitted.
   */
  closed(reason: string): void;
}

/** A link with a document, for its other end. */
export interface Link {
  /** Sends a frame to the page. */
  send(frame: string): void;
  /** Ends it. `closed` is not called. */
  close(): void;
  /** Refuses the document. `closed` is called. */
  refuse(why: string): void;
}

/**
 * What a transport serves: a document (documents.ts), what a tab shows (shows.ts), or a report
 * (reports.ts).
 */
export interface Linkable {
  /** Unlike that of any other. */
  readonly id: number;
  readonly origin: string;
  readonly admitted: boolean;
  /**
   * Begins a link, and ends the one before. `name` makes the names of the tab and its window.
   * Throws unless admitted.
   */
  link(name: TabName, events: LinkEvents): Link;
  /** Keeps the browser from suspending the worker, by an event or a call of its own. */
  keepAlive(): void;
}

export interface Transport {
  readonly state: State;
  /** Serves these documents from now on, and no others. */
  serve(documents: readonly Linkable[]): void;
  close(): void;
}

/**
 * The name of a tab, or of a window, at the gateway. It stays the same after a reload and after the
 * worker was suspended, but not after the browser has ended.
 */
export type TabName = (id: number) => string;

/** Makes `served` match the documents. */
export function syncServed<S>(
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

/**
 * The link's last frame for a document that will not come back. Without it the gateway waits for
 * the document.
 */
export const farewell = '[["bye",true]]';

/**
 * The most that may wait for the gateway, in UTF-16 code units: of one document (several answers),
 * and of all.
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
