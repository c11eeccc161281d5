/**
 * Lets a View subscribe to the resources of `upstream`: the host's `Client` of @modelcontextprotocol/client 2.x, or a
 * channel of messages. The View must be allowed to know this server. `bridge` is an `AppBridge` of
 * @modelcontextprotocol/ext-apps 2.x, or, for a host without one, the View's frame or window.
 *
 * Call it for each View before its bridge is connected. If you call it later, the View learns of subscriptions at its
 * next request. Views of one upstream share its subscriptions, with the options of the first call. The View's
 * subscriptions end when the frame is removed or loads another document, or the bridge is closed. An App in the new
 * document starts with its `ui/initialize`. If it is unclear whether the document is another App, a `ping` asks it.
 */
export function attachViews(
  bridge: BridgeLike | HTMLIFrameElement | Window,
  upstream: Upstream | ClientLike,
  options?: AttachOptions,
): Views;

/** The key, in `experimental` and in the host context, that announces subscriptions to a View. */
export const EXPERIMENTAL: "io.github.pagewire/resourceSubscriptions";

/** The members of an `AppBridge` that are used. */
export interface BridgeLike {
  readonly transport?: object | undefined;
  connect(transport: never, ...rest: never[]): Promise<void>;
}

/** Options of `attachViews`. The first call for an upstream sets those of its server. */
export interface AttachOptions {
  /**
   * The View's frame. Its removal, or another document in it, ends the subscriptions. Default: the frame that the
   * bridge's transport posts to, which is not found in a closed shadow tree.
   */
  frame?: HTMLIFrameElement;
  /** The most URIs that a View may watch at a time. Default 10. */
  maxSubscriptions?: number;
  /** The error code of a subscription above that limit. Default -32603; the proposal's placeholder is -32001. */
  limitCode?: number;
  /** The most updates of one URI that a View gets per second. Default 10. */
  updatesPerSecond?: number;
  /** The longest wait for an answer of the server, in ms. Default 30,000. */
  timeout?: number;
  /**
   * The part that answers `resources/read` and the lists. "host" (default for an AppBridge): the bridge as before, with
   * its own rules. "shared" (default for a host without one): this module, which sends simultaneous equal requests of
   * several Views to the server only once.
   */
  reads?: "host" | "shared";
  /**
   * For a host without AppBridge: the only origin that messages go to and come from. Default: any, since a sandboxed
   * frame has no origin of its own.
   */
  origin?: string;
}

/** One attached View, the result of `attachViews`. */
export interface Views {
  /**
   * Resolved from the start, since nothing has to be loaded. It rejects above the limit of 1,024 Views of a server: that
   * View has no subscriptions, and the host announces none.
   */
  readonly ready: Promise<void>;
  /**
   * Returns `hostCapabilities` with subscriptions added, for the answer to `ui/initialize`. An AppBridge's answer has
   * them already. Nothing is added for a View that is closed, or if the server has no subscriptions.
   */
  capabilities<T extends object>(hostCapabilities: T): T;
  /** Call it when the host sends `ui/resource-teardown`. Not needed with an AppBridge. */
  teardown(): void;
  /** Ends the View and its subscriptions. Called automatically when the frame is gone or the bridge is closed. */
  close(): void;
  /** Whether the View has ended. */
  readonly closed: boolean;
  /** Counters of the server, over all its Views. */
  stats(): ViewStats;
}

/** The counters of `stats`. */
export interface ViewStats {
  views: number;
  subscriptions: number;
  watched: number;
  /** Subscriptions held at the server. */
  upstream: number;
  streams: number;
  pending: number;
  known: number;
  updates: number;
  reads: number;
  lists: number;
  subscribes: number;
  unsubscribes: number;
  listens: number;
  cancels: number;
}

/** A channel to a server. The host has completed the handshake with it. */
export interface Upstream {
  /** The era of the server: "legacy" up to 2025-11-25, "modern" from 2026-07-28. */
  era: "legacy" | "modern";
  send(message: Message): void;
  /** Set by `attachViews`; call it with each message of the server. It returns whether the message was taken. */
  onmessage?: ((message: Message) => boolean) | undefined;
  /** Set by `attachViews`; call it with null when the connection is lost, and with the era when it is back. */
  onconnection?: ((era: "legacy" | "modern" | null) => void) | undefined;
}

/** The members of the official client (`Client` of @modelcontextprotocol/client 2.x) that are used. */
export interface ClientLike {
  readonly transport?: object | undefined;
  connect(transport: never, ...rest: never[]): Promise<void>;
  request(request: { method: string; params?: unknown }, options?: { signal?: AbortSignal }): Promise<unknown>;
  listen?(
    filter: { resourceSubscriptions: string[]; resourcesListChanged?: boolean },
    options?: { signal?: AbortSignal },
  ): Promise<ListenLike>;
  getServerCapabilities():
    | { resources?: { subscribe?: boolean | undefined; listChanged?: boolean | undefined } | undefined }
    | undefined;
  getProtocolEra?(): "legacy" | "modern" | undefined;
}

/** The members of the client's subscriptions that are used. */
export interface ListenLike {
  readonly honoredFilter: { resourceSubscriptions?: string[] | undefined };
  readonly closed: Promise<"local" | "graceful" | "remote">;
  close(): Promise<void>;
}

/** A JSON-RPC message, as an object. */
export interface Message {
  jsonrpc: "2.0";
  id?: unknown;
  method?: string;
  params?: Record<string, unknown>;
  result?: unknown;
  error?: unknown;
}
