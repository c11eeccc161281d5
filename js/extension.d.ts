/**
 * pagewire/extension/worker gives an extension's service worker the documents of the tabs. A document gets a core when
 * the worker opens a session with it. That needs pagewire.wasm, and `'wasm-unsafe-eval'` in the extension's policy. The
 * other two files, pagewire/extension/page and pagewire/extension/relay, are content scripts, and export nothing.
 */

export interface Options {
  /** The URL of pagewire.wasm. Default: in the manifest's folder. */
  wasm?: string;
  /** Decides whether documents of `origin` are served. Called for each new document, and for all of them by `look`. */
  admits(origin: string): boolean | Promise<boolean>;
  /** Called when a member of any Document has changed, at most once per turn of the event loop. */
  changed?(): void;
}

/** The extension's end of an MCP session with a document. Messages are JSON-RPC, as text. */
export interface Carrier {
  deliver(text: string): void;
  /** The document, or its core, has ended the session. Not called after `Session.close`. */
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
  /** The path of its frame in the tab: "" for the top frame, "0.1" for the second frame in the first. */
  readonly frame: string;
  readonly frameId: number;
  readonly origin: string;
  readonly url: string;
  readonly title: string;
  /** The time at which its window last had the focus, in ms since 1970; 0 for never. */
  readonly focused: number;
  /** The number of resources and tools, as the document reports it. */
  readonly offers: number;
  readonly admitted: boolean;
  /** The number of open sessions. */
  readonly sessions: number;
  /** Opens a session. Rejects if the document has gone, is not admitted, or has no core. */
  open(carrier: Carrier): Promise<Session>;
  /** Sends the document's relay an empty message: the browser suspends a worker that sends nothing for 30 s. */
  keepAlive(): void;
}

export interface Documents {
  /** All documents, in the order in which they came. */
  list(): Document[];
  /** Calls `admits` again for all documents, and asks the tabs for documents that were told to wait. */
  look(): Promise<void>;
  /** While on, also keeps the documents that are not admitted, so that they can be shown. They have no core. */
  attend(on: boolean): void;
  /** The number of refused connections, by reason. */
  readonly refused: ReadonlyMap<string, number>;
  /** Counts and logs a refusal by the extension itself. */
  refuse(reason: string, peer: string): void;
}

/** Begins to serve documents. Call it when the worker starts, before the first `await`. */
export declare function documents(options: Options): Documents;
