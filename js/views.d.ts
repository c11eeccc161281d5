/**
 * Lets a View subscribe to resources of `upstream`, a server that it may know: the host's `Client` of
 * @modelcontextprotocol/client 2.x, or a channel of messages. `bridge` is an `AppBridge` of
 * @modelcontextprotocol/ext-apps 2.x, or, for a host without one, the View's frame or window.
 *
 * Call it for each View, before its bridge is connected (or after; then the View learns of it at its next request).
 * Views of one upstream share its subscriptions; the options of the first count for all. When the frame is removed, or
 * has loaded another document, or the bridge is closed, everything that the View watched is released; an App in that
 * document begins anew with its `ui/initialize`. A document of which that is not plain is asked by a `ping`.
 */
export function attachViews(
  bridge: BridgeLike | HTMLIFrameElement | Window,
  upstream: Upstream | ClientLike,
  options?: AttachOptions,
): Views;

/** The key under `experimental`, and in the host context, by which a View learns of subscriptions. */
export const EXPERIMENTAL: "io.github.pagewire/resourceSubscriptions";

/** The part of an `AppBridge` that is used. */
export interface BridgeLike {
  readonly transport?: object | undefined;
  connect(transport: never, ...rest: never[]): Promise<void>;
}

/** How Views of a server are served. */
export interface AttachOptions {
  /** Where pagewire.views.wasm is. Default: beside this script. */
  wasm?: string | URL;
  /** The subresource-integrity value that pagewire.views.wasm must have. */
  integrity?: string;
  /**
   * The View's frame, so that its removal, and another document in it, are noticed. Default: the frame that the
   * bridge's transport posts to; it is not found in a closed shadow tree.
   */
  frame?: HTMLIFrameElement;
  /** How many URIs a View may watch at a time. Default 10. */
  maxSubscriptions?: number;
  /** The error code for one more. Default -32603; the proposal's placeholder is -32001. */
  limitCode?: number;
  /** How many updates of one URI a View is told in a second. Default 10. */
  updatesPerSecond?: number;
  /** How long the server may take to answer, in ms. Default 30,000. */
  timeout?: number;
  /**
   * The part that answers `resources/read` and the lists: "host", the bridge as before, with its own rules; or
   * "shared", this module, which asks the server once if several Views ask for the same at once. Default "host" for an
   * AppBridge, "shared" for a host without one.
   */
  reads?: "host" | "shared";
  /**
   * For a host without AppBridge: the origin that messages are sent to, and taken from. Default any, as a sandboxed
   * frame has none.
   */
  origin?: string;
}

/** What `attachViews` returns: one View's place. */
export interface Views {
  /**
   * Resolves when subscriptions work. Rejects with what to do; the host then goes on without them, and announces none.
   */
  readonly ready: Promise<void>;
  /**
   * `hostCapabilities` with what this host can do added, to be sent in the answer to `ui/initialize`. An AppBridge's
   * answer has it already. Without subscriptions at the server, or before `ready`, it is the same as before.
   */
  capabilities<T extends object>(hostCapabilities: T): T;
  /** Says that `ui/resource-teardown` is being sent. An AppBridge's is seen. */
  teardown(): void;
  /**
   * Ends the View: everything that it watched is released. It is called when the frame is gone or the bridge is closed.
   */
  close(): void;
  /** Whether the View has ended. */
  readonly closed: boolean;
  /** Counters of the server's host, all its Views together. */
  stats(): ViewStats;
}

/** Counters. */
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

/** A channel to a server with which the host has made the handshake. */
export interface Upstream {
  /** The era of the server: "legacy" up to 2025-11-25, "modern" from 2026-07-28. */
  era: "legacy" | "modern";
  send(message: Message): void;
  /** Set by `attachViews`; call it with each message of the server. It returns whether the message was taken. */
  onmessage?: ((message: Message) => boolean) | undefined;
  /** Set by `attachViews`; call it when the connection is lost (null), and with the era when there is one again. */
  onconnection?: ((era: "legacy" | "modern" | null) => void) | undefined;
}

/** The part of the official client that is used (`Client` of @modelcontextprotocol/client 2.x). */
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

/** The part of its subscriptions that is used. */
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
