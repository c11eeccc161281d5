/**
 * A session with a document needs pagewire.wasm, and `'wasm-unsafe-eval'` in the extension's policy.
 * pagewire/extension/page and pagewire/extension/relay are content scripts, and export nothing.
 */

export interface Options {
  /** URL of pagewire.wasm. Default: in the manifest's folder. */
  wasm?: string;
  /** Whether documents of `origin` are served. Asked for each new one, and by `look`. */
  admits(origin: string): boolean | Promise<boolean>;
  /** Called when a Document changes, at most once per turn. */
  changed?(): void;
}

/** The extension's end of a session. Messages are JSON-RPC, as text. */
export interface Carrier {
  deliver(text: string): void;
  /** Called when the document or its core ends the session. */
  closed(reason: string): void;
}

export interface Session {
  receive(text: string): void;
  close(): void;
}

export interface Document {
  readonly id: number;
  readonly tab: number;
  /** Its path: "" for the top frame, "0.1" for the second frame in the first. */
  readonly frame: string;
  readonly frameId: number;
  readonly origin: string;
  readonly url: string;
  readonly title: string;
  /** When its window last had the focus, in ms since 1970; 0 for never. */
  readonly focused: number;
  /** Number of its resources and tools, as it says. */
  readonly offers: number;
  readonly admitted: boolean;
  /** Open sessions. */
  readonly sessions: number;
  /** Rejects if the document has gone, is not admitted, or has no core. */
  open(carrier: Carrier): Promise<Session>;
  /** Sends a message: browsers suspend a worker that sends none for 30 s. */
  keepAlive(): void;
}

export interface Documents {
  /** In order of arrival. */
  list(): Document[];
  /** Asks `admits` again, also for documents that were told to wait. */
  look(): Promise<void>;
  /** While on, also lists documents that are not admitted. They have no core. */
  attend(on: boolean): void;
  /** Refused connections, by reason. */
  readonly refused: ReadonlyMap<string, number>;
  /** Counts and logs a refusal of yours. */
  refuse(reason: string, peer: string): void;
}

/** Serves documents. Call it when the worker starts, before the first `await`. */
export declare function documents(options: Options): Documents;
