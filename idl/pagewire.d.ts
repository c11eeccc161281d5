// By hand (idl/pagewire.d.ts): what no IDL describes.

declare global {
  // The DOM library's. Without it, on a server, these types are still all there.
  interface AbortSignal {}
  interface AddEventListenerOptions {}
  interface Blob {}
  interface CustomEvent<T = any> {
    readonly detail: T;
  }
  interface Event {}
  interface EventTarget {}

  // WebMCP's interface, with the one of its methods for tools that pages call.
  interface ModelContext extends EventTarget {
    /** WebMCP's: offers a tool to agents, until `options.signal` is aborted. */
    registerTool(tool: ModelContextTool, options?: ModelContextRegisterToolOptions): Promise<void>;
    addEventListener<K extends keyof ModelContextEventMap>(
      type: K,
      listener: (this: ModelContext, event: ModelContextEventMap[K]) => void,
      options?: boolean | AddEventListenerOptions,
    ): void;
    addEventListener(type: string, listener: PagewireListener, options?: boolean | AddEventListenerOptions): void;
    removeEventListener<K extends keyof ModelContextEventMap>(
      type: K,
      listener: (this: ModelContext, event: ModelContextEventMap[K]) => void,
      options?: boolean | AddEventListenerOptions,
    ): void;
    removeEventListener(type: string, listener: PagewireListener, options?: boolean | AddEventListenerOptions): void;
  }
  var ModelContext: { prototype: ModelContext; new (): ModelContext };

  interface ModelContextEventMap {
    /** A resource was announced to have changed. */
    resourceupdated: CustomEvent<{ uri: string }>;
    /** The list of the page's tools has changed. */
    toolchange: Event;
  }

  /** A tool of the page, as WebMCP has it. */
  interface ModelContextTool {
    name: string;
    title?: string | undefined;
    description: string;
    /** A JSON Schema of the input. */
    inputSchema?: object | undefined;
    annotations?: { readOnlyHint?: boolean | undefined; untrustedContentHint?: boolean | undefined } | undefined;
    /** Its result, as text, JSON or in the shape of MCP's tool results, is the answer. `input` is not checked. */
    execute(input: any, options: { signal: AbortSignal }): unknown;
  }

  interface ModelContextRegisterToolOptions {
    /** Withdraws the tool when aborted. */
    signal?: AbortSignal | undefined;
    exposedTo?: readonly string[] | undefined;
  }

  /**
   * The parameters of a URI: the variables of a template whose literal is known, those of its query only where a URI has
   * them.
   */
  type ModelContextReadParams<URI extends string> = string extends URI
    ? object
    : URI extends `${string}{${infer Names}}${infer Rest}`
      ? (Names extends `?${infer Query}`
          ? { readonly [Name in ModelContextReadNames<Query>]?: string }
          : { readonly [Name in Names]: string }) &
          ModelContextReadParams<Rest>
      : object;
  type ModelContextReadNames<List extends string> = List extends `${infer Name},${infer Rest}`
    ? Name | ModelContextReadNames<Rest>
    : List;

  /** What `read` may give: text, one piece of contents, or several. */
  type ModelContextReadResult =
    | string
    | ModelContextResourceContents
    | { contents: readonly ModelContextResourceContents[] };

  var pagewire: Pagewire;
}

/** A listener of events that are not typed. */
export type PagewireListener = ((event: any) => void) | { handleEvent(event: any): void } | null;

/** One JSON-RPC message. The official client's own types fit. */
export type JSONRPCMessage = { jsonrpc: "2.0" };

/** An open port for an agent in the page: the official TypeScript client takes it as its transport. */
export interface PagewireTransport {
  start(): Promise<void>;
  /** Rejects once the transport is closed, saying why. */
  send(message: JSONRPCMessage, options?: object): Promise<void>;
  close(): Promise<void>;
  onmessage?: ((message: any, extra?: any) => void) | undefined;
  onclose?: (() => void) | undefined;
  /** Called before `onclose` where the port did not end as intended. */
  onerror?: ((error: Error) => void) | undefined;
}

/** Where the core is, when it is loaded, and what agents are told. URLs are relative to the document. */
export interface PagewireOptions {
  /** When the core is loaded: when the first agent connects (the default), when the page is idle, or at once. */
  load?: "agent" | "idle" | "eager" | undefined;
  /** The URL of pagewire.core.js. Default: beside the script. So are the next two. */
  core?: string | undefined;
  /** The URL of pagewire.wasm. */
  wasm?: string | undefined;
  /** The URL of pagewire.worker.js. */
  worker?: string | undefined;
  /** The subresource-integrity value that pagewire.wasm must have. */
  integrity?: string | undefined;
  /** The name that agents are told. Default: the host name. */
  name?: string | undefined;
  /** The version that agents are told. */
  version?: string | undefined;
  /** Whether agents are told why a read failed. Default false: the page's error messages may contain secrets. */
  exposeErrors?: boolean | undefined;
  /**
   * Other origins whose frames and windows may connect with a MessagePort, and then read every resource. Default: none.
   * In an attribute or a string they are separated by spaces.
   */
  origins?: string | readonly string[] | undefined;
  /**
   * What the page's tools depend on, by the name of the tool: URIs of resources, 32 at most. An agent of a gateway that
   * has read one of them as it was before its last notifyResourceUpdated is refused, before the tool runs, and told
   * what has changed. With `onStale: "tell"` the tool runs, and its result says what was older. An agent that has not
   * read them is not refused. A mistake here is reported on the console, and that tool is not served to MCP clients.
   */
  freshState?: { readonly [tool: string]: readonly string[] | FreshState } | undefined;
  /**
   * The URL of a gateway, `pagewire serve`, whose agents may then read every resource: ws://127.0.0.1:7433. Default:
   * none.
   */
  gateway?: string | undefined;
  /**
   * Where the page has a ticket for the gateway, if that is one of its service (`pagewire node`): a URL of the page's
   * own service, which answers with a JWT, as text or as {"ticket":"…"}. It is fetched when the page connects, and
   * again before the ticket ends. Default: none.
   */
  ticket?: string | undefined;
}

/**
 * The URIs that a tool depends on, and the effect on a call by an agent that has seen older contents. Default: refuse.
 */
export interface FreshState {
  readonly uris: readonly string[];
  readonly onStale?: "refuse" | "tell" | undefined;
}

/** A snapshot of the page layer. */
export interface PagewireStats {
  core: "none" | "loading" | "ready";
  /** Resources and templates registered now. */
  resources: number;
  /** Ports open now. */
  ports: number;
  /** Reads that run, or whose contents are held, now. */
  reading: number;
  /** URIs that agents watch now. */
  watched: number;
  /** Reads so far. */
  reads: number;
  /** Calls of notifyResourceUpdated so far, and those among them whose URI was not registered. */
  notified: number;
  unknown: number;
  /** Cores that died so far. */
  deaths: number;
}

export interface PagewireEventMap {
  /** The first core is up. */
  ready: CustomEvent<Record<string, never>>;
  /** A core died; its ports are closed. */
  coredead: CustomEvent<{ reason: string }>;
  /** Another core has taken over the registrations. */
  corerestart: CustomEvent<Record<string, never>>;
  /** A port is closed. Ports are numbered from 1. */
  portclose: CustomEvent<{ port: number; reason: string }>;
  /** The core could not be started, or dies again and again. */
  error: CustomEvent<{ message: string; cause?: unknown }>;
}

/** `globalThis.pagewire`. */
export interface Pagewire extends EventTarget {
  /** Opens a port for an agent in the page. Throws without a secure context, and after `uninstall`. */
  connect(): PagewireTransport;
  /**
   * Sets options; a core that runs keeps those that it was started with. The script tag's data- attributes do the same.
   */
  configure(options: PagewireOptions): void;
  /** Closes all ports, withdraws all resources, and restores every property that was defined, this one included. */
  uninstall(): void;
  stats(): PagewireStats;
  addEventListener<K extends keyof PagewireEventMap>(
    type: K,
    listener: (this: Pagewire, event: PagewireEventMap[K]) => void,
    options?: boolean | AddEventListenerOptions,
  ): void;
  addEventListener(type: string, listener: PagewireListener, options?: boolean | AddEventListenerOptions): void;
  removeEventListener<K extends keyof PagewireEventMap>(
    type: K,
    listener: (this: Pagewire, event: PagewireEventMap[K]) => void,
    options?: boolean | AddEventListenerOptions,
  ): void;
  removeEventListener(type: string, listener: PagewireListener, options?: boolean | AddEventListenerOptions): void;
}

/** The same object as `globalThis.pagewire`. Importing the module installs the page API. */
export const pagewire: Pagewire;
export default pagewire;
