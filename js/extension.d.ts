/**
 * pagewire/extension/worker: the documents of an extension's tabs, for its service worker, and a core for each that it
 * opens a session with, which needs pagewire.wasm and `'wasm-unsafe-eval'` in the extension's policy. The two
 * other files, pagewire/extension/page and pagewire/extension/relay, are content scripts, and export nothing.
 */

export interface Options {
  /** Where pagewire.wasm is. Default: beside the manifest. */
  wasm?: string;
  /** Whether documents of an origin are served. Asked when one comes, and when `look` is called. */
  admits(origin: string): boolean | Promise<boolean>;
  /** Called when a member of a Document has changed, once per turn. */
  changed?(): void;
}

/** One end of an MCP session with a document: JSON-RPC messages as text. */
export interface Carrier {
  deliver(text: string): void;
  /** The session is over, by the document's decision. */
  closed(reason: string): void;
}

export interface Session {
  receive(text: string): void;
  close(): void;
}

/** One document, in one frame of one tab. */
export interface Document {
  readonly id: number;
  readonly tab: number;
  /** Where it is among the frames of its tab: "" for the tab's own, "0.1" for the second frame in the first. */
  readonly frame: string;
  readonly frameId: number;
  readonly origin: string;
  readonly url: string;
  readonly title: string;
  /** When its window had the focus last, in ms since 1970; 0 for never. */
  readonly focused: number;
  /** How many resources and tools it says it has. */
  readonly offers: number;
  readonly admitted: boolean;
  /** Sessions that are open. */
  readonly sessions: number;
  /** Opens a session. Rejects if the document has gone, is not admitted, or has no core. */
  open(carrier: Carrier): Promise<Session>;
  /** Sends the document's relay an empty message: the browser suspends a worker that sends nothing for 30 s. */
  keepAlive(): void;
}

export interface Documents {
  /** All documents, in the order in which they came. */
  list(): Document[];
  /** Asks `admits` again for all documents, and the tabs for those that have been told to wait. */
  look(): Promise<void>;
  /** While on, also keeps the documents that are not admitted, so that they can be shown. They have no core. */
  attend(on: boolean): void;
  /** The reasons for which connections were refused, and how often. */
  readonly refused: ReadonlyMap<string, number>;
  /** Counts and logs a refusal by the extension itself. */
  refuse(reason: string, peer: string): void;
}

/** Begins to serve documents. To be called when the worker starts, before anything is awaited. */
export declare function documents(options: Options): Documents;
