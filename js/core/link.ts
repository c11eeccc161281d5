/**
 * The link between the page layer and a core, seen from both sides.
 *
 * What travels: calls that carry only strings and numbers, so that the same link is a direct call (core on the
 * page), a pair of postMessage queues (core in a worker) or a CDP binding (core in the gateway). Both sides see
 * calls in the order in which they were made. No call returns anything, and none throws. Who answers: the page
 * answers every `read` with one `complete`, unless `end` for that call came first; nothing else is answered. On
 * close: after `stop` or `dead` a core makes no further call and ignores those made to it; the page may start another.
 *
 * Resource contents cross the link only to a core that `carries` them. The page layer holds them from `complete` until
 * `end`, and puts them into the messages that name the call.
 */

/** What the page layer asks of a core. */
export interface Core {
  /** Set where the core has agents of its own beside the page's ports: `complete` then tells it the contents, too. */
  readonly carries?: true;
  /** Offers a resource. `descriptor` is the JSON text of its members except `read`; its URI is canonical. */
  register(descriptor: string): void;
  /** Withdraws the resource registered under `uri`. */
  unregister(uri: string): void;
  /** Says that what `uri` reads as has changed. */
  touch(uri: string): void;
  /** Opens a port: one MCP session. Numbers are the page's to choose, from 1, and are never used twice. */
  open(port: number): void;
  /** Hands over one JSON-RPC message that arrived on a port, as JSON text. */
  receive(port: number, message: string): void;
  /** Says whether a port can take more. Ports start out writable. */
  writable(port: number, on: boolean): void;
  /** Ends a port, and everything that it held. */
  close(port: number): void;
  /** Says what tools there are: the JSON text of an array of MCP tools. It replaces what was said before. */
  setTools(tools: string): void;
  /**
   * Answers a `read` or a `callTool`. With status `Status.ok` the page holds the contents (or the tool's result), and `size` is the length of their JSON text in UTF-16
   * code units (or less, where the core's limit is out of reach), and `detail` that text if the core `carries` contents; otherwise `detail` says what went wrong, for agents only if the page exposes its errors.
   */
  complete(call: number, status: Status, size: number, detail: string): void;
  /** Ends the core for good, without a `dead`. It makes no further call, and ignores those made to it. */
  stop(): void;
}

/** What a core asks of the page layer. */
export interface Page {
  /**
   * Sends one JSON-RPC message, as JSON text, to a port. With `call` other than 0, what the page holds for that call
   * belongs at UTF-16 offset `hole` of `message`, where there is nothing now: for a read the JSON text of the contents,
   * an array that becomes `result.contents`; for a tool the JSON text of its result's members, without the braces,
   * which become members of `result`.
   */
  send(port: number, message: string, call: number, hole: number): void;
  /** Wants what `uri` reads as. `params` is "" or the JSON text of an object: the parameters that `uri` carried. `key` is the URI or template it was registered under. */
  read(call: number, key: string, uri: string, params: string): void;
  /** Wants a tool run with the JSON text of an object. Its result, MCP's CallToolResult, is held as contents are. */
  callTool(call: number, name: string, args: string): void;
  /** Needs nothing more of a call: abort it if it still runs, drop what is held for it. Once per `read` and `callTool`. */
  end(call: number): void;
  /** The first watcher of `uri` came (true) or the last one left (false). */
  watched(uri: string, on: boolean): void;
  /** A port's session is over by the core's decision; close the port. */
  closed(port: number, reason: string): void;
  /** Something that a developer should see, one sentence: a refused registration, a broken message. */
  report(message: string): void;
  /** The core is gone. Every port is lost with it. */
  dead(reason: string): void;
}

/** How a read ended. The numbers are wasm/edge.go's. */
export const enum Status {
  ok = 0,
  /** The callback threw, or its promise was rejected. */
  failed = 1,
  /** It returned something that is not resource contents. */
  invalid = 2,
}

/** What a core needs to know to start. */
export interface CoreOptions {
  /** Where pagewire.wasm is. */
  wasm: string;
  /** Subresource-integrity value that the wasm must have. */
  integrity?: string;
  /** Where pagewire.worker.js is: the core's home where the page's CSP forbids wasm. */
  worker: string;
  /** The page's origin, as `self.origin` gives it. */
  origin: string;
  /** Name and version that agents are told; the default is the page's host name. */
  name?: string;
  version?: string;
  /** Whether tools are served: without it the core offers resources only. */
  tools?: boolean;
  /** Whether agents are told why a read failed. Default false: a page's messages may hold secrets. */
  exposeErrors?: boolean;
}

/** What dist/pagewire.core.js exports: starts a core, on the page or in a worker. Rejects with an error that says what to do. */
export type Start = (page: Page, options: CoreOptions) => Promise<Core>;
