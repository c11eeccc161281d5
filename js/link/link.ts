/**
 * The link between a page and its cores, with the calls of both sides. bridge/link/LINK.md
 * describes it. channel.ts turns the calls into text frames.
 *
 * What travels: calls that carry only strings, numbers and booleans, so that the same link is a
 * direct call (core on the page), a pair of postMessage queues (core in a worker) or text frames
 * (core elsewhere). Both sides see calls in the order in which they were made. No call returns
 * anything, and none throws. Answers: the page answers every `read` and `callTool` with one
 * `complete`, unless `end` for that call came first; nothing else is answered. On close: after
 * `stop` or `dead` a core makes no further call and ignores those made to it; the page may start
 * another.
 *
 * It never carries an object of the page, and contents only to a core that `carries` them. For
 * other cores the page layer keeps the contents from `complete` until `end`, and puts them into the
 * messages that name the call.
 */

/** The version of the link. */
export const linkVersion = 1;

/** A core, as a page sees it. */
export interface Core {
  /**
   * Offers a resource. `descriptor` is the JSON text of its members except `read`; its URI is
   * canonical.
   */
  register(descriptor: string): void;
  /** Withdraws the resource registered under `uri`. */
  unregister(uri: string): void;
  /** Says that the contents of `uri` have changed, or gives their present revision. */
  touch(uri: string, revision: number): void;
  /** Sets the tools: the JSON text of an array of MCP tools. */
  setTools(tools: string): void;
  /**
   * Asks whether to start a tool that a `callTool` was sent for at `sent`. The core answers with
   * `start`, or with `end` if nobody waits for the call any more.
   */
  starting(call: number, sent?: number): void;
  /**
   * Answers a `read` or a `callTool`. With `Status.ok`, `size` is the length of the contents (or
   * the tool's result) as JSON text in UTF-16 code units; it may be less if the core's limit is out
   * of reach. `detail` is that text if the core `carries` contents. With any other status `detail`
   * is the error message that agents may see.
   */
  complete(call: number, status: Status, revision: number, size: number, detail: string): void;
  /** Set for a core elsewhere: `complete` then sends it the contents, too. */
  readonly carries?: true;
  /**
   * Ends the core for good, without a `dead`. It makes no further call, and ignores those made to
   * it.
   */
  stop(): void;
}

/** A core that serves agents in the page, whose ports the page opens. */
export interface PortCore extends Core {
  /**
   * Opens a port: one MCP session. Numbers are the page's to choose, from 1, and are never used
   * twice.
   */
  open(port: number): void;
  /** Takes one JSON-RPC message that arrived on a port, as JSON text. */
  receive(port: number, message: string): void;
  /** Says whether a port can take more. Ports start out writable. */
  writable(port: number, on: boolean): void;
  /** Ends a port, and everything that it held. */
  close(port: number): void;
}

/** A page, as a core sees it. */
export interface Source {
  /**
   * Asks for the contents of `uri`. `params` is "" or the JSON text of an object: the parameters
   * that `uri` carried.
   * `key` is the registered URI or template.
   */
  read(call: number, key: string, uri: string, params: string): void;
  /**
   * Runs a tool with the JSON text of an object, once the core has answered `starting`. The page
   * holds its result, MCP's CallToolResult, like contents. `unless` is "", or the JSON text of an
   * array of [uri, revision]: the tool does not run if one of them has changed. `sent` is the time
   * of a core elsewhere, in ms.
   */
  callTool(call: number, name: string, args: string, unless: string, sent?: number): void;
  /** Answers `starting`: the tool runs now. */
  start(call: number): void;
  /**
   * Ends a call, once per `read` and `callTool`. The page aborts it if it still runs, and drops its
   * contents or result.
   * `unheard` says that the core has not had the result of a tool.
   */
  end(call: number, unheard?: boolean): void;
  /** The first watcher of `uri` came (true) or the last one left (false). */
  watched(uri: string, on: boolean): void;
  /**
   * Something that a developer should see, one sentence: a refused registration, a broken message.
   */
  report(message: string): void;
  /** The core is dead. Every port is lost with it. */
  dead(reason: string): void;
}

/** A page with agents of its own, whose ports a core serves. */
export interface PortSource extends Source {
  /**
   * Sends one JSON-RPC message, as JSON text, to a port. If `call` is not 0, the page inserts the
   * text that it holds for that call at UTF-16 offset `hole` of `message`. For a read that is the
   * JSON text of the contents, an array that becomes `result.contents`. For a tool it is the
   * members of its result as JSON text without the braces, which become members of `result`.
   */
  send(port: number, message: string, call: number, hole: number): void;
  /** The core has ended a port's session. The page closes the port. */
  closed(port: number, reason: string): void;
}

/** How a call ended. The numbers are the link's, and wasm/edge.go's. */
export const enum Status {
  ok = 0,
  /** The callback threw, or its promise was rejected. */
  failed = 1,
  /** It returned something that is not resource contents. */
  invalid = 2,
  /** The tool did not run: a URI in `unless` has changed. */
  stale = 3,
}

/** The options of a core of this page. */
export interface CoreOptions {
  /** The URL of pagewire.wasm. */
  wasm: string;
  /** Subresource-integrity value that the wasm must have. */
  integrity?: string;
  /** The URL of pagewire.worker.js, which runs the core if the page's CSP forbids wasm. */
  worker: string;
  /** The page's origin, as `self.origin` gives it. */
  origin: string;
  /** A text that no other document has. */
  epoch?: string;
  /** The server's name and version, for agents. The default name is the page's host name. */
  name?: string;
  version?: string;
  /** Whether tools are served: without it the core offers resources only. */
  tools?: boolean;
}

/**
 * Starts a core, on the page or in a worker: an export of dist/pagewire.core.js. `wasm` is the
 * response with the module, if it was fetched already. Rejects with an error that says what to do.
 */
export type Start = (page: PortSource, options: CoreOptions, wasm?: Promise<Response>) => Promise<PortCore>;
