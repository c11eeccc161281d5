/**
 * Lets a View subscribe to the resources of `upstream`, a server. `bridge` is an AppBridge, or the View's frame or
 * window.
 *
 * Call it for each View that may know this server, before its bridge is connected. The subscriptions end with the frame,
 * its document or the bridge.
 */
export function attachViews(
  bridge: BridgeLike | HTMLIFrameElement | Window,
  upstream: Upstream | ClientLike,
  options?: AttachOptions,
): Views;

/** The key that announces subscriptions to a View. */
export const EXPERIMENTAL: "io.github.pagewire/resourceSubscriptions";

/** An `AppBridge` of @modelcontextprotocol/ext-apps 2.x. */
export interface BridgeLike {
  readonly transport?: object | undefined;
  connect(transport: never, ...rest: never[]): Promise<void>;
}

/** The first call for an upstream sets the limits of all its Views. */
export interface AttachOptions {
  /** The View's frame. Only needed in a closed shadow tree. */
  frame?: HTMLIFrameElement;
  /** URIs of a View at a time. Default 10. */
  maxSubscriptions?: number;
  /** The error above that limit. Default -32603; the proposal has -32001. */
  limitCode?: number;
  /** Of one URI, to a View. Default 10. */
  updatesPerSecond?: number;
  /** Of a request to the server, in ms. Default 30,000. */
  timeout?: number;
  /** Who answers reads and lists: the AppBridge (default, if any), or this module, which merges equal requests. */
  reads?: "host" | "shared";
  /** Without AppBridge: the only origin of messages. Default: any. */
  origin?: string;
}

export interface Views {
  /** Rejects above 1,024 Views of a server: this one gets no subscriptions. */
  readonly ready: Promise<void>;
  /** Adds subscriptions for the answer to `ui/initialize`. An AppBridge does that itself. */
  capabilities<T extends object>(hostCapabilities: T): T;
  /** Without AppBridge: call it with `ui/resource-teardown`. */
  teardown(): void;
  /** Ends the View, as when its frame or bridge ends. */
  close(): void;
  readonly closed: boolean;
  stats(): ViewStats;
}

/** Of the server, over all its Views. */
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

/** A channel to a server, after the handshake. */
export interface Upstream {
  /** "legacy" up to 2025-11-25, "modern" from 2026-07-28. */
  era: "legacy" | "modern";
  send(message: Message): void;
  /** Call it with each message of the server. Returns whether it took the message. */
  onmessage?: ((message: Message) => boolean) | undefined;
  /** Call it with null when the connection is lost, and the era when it is back. */
  onconnection?: ((era: "legacy" | "modern" | null) => void) | undefined;
}

/** A `Client` of @modelcontextprotocol/client 2.x. */
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

/** What its `listen` gives. */
export interface ListenLike {
  readonly honoredFilter: { resourceSubscriptions?: string[] | undefined };
  readonly closed: Promise<"local" | "graceful" | "remote">;
  close(): Promise<void>;
}

export interface Message {
  jsonrpc: "2.0";
  id?: unknown;
  method?: string;
  params?: Record<string, unknown>;
  result?: unknown;
  error?: unknown;
}
