/**
 * Calls back with what `uri` reads as, at once and whenever that has changed, until `stop` or the View's teardown. Two
 * watches of one URI are one subscription.
 */
export function watchResource(
  app: AppLike,
  uri: string,
  callback: (result: ResourceResult) => void,
  options?: WatchOptions,
): ResourceWatch;

/**
 * Whether a host says that Views can subscribe: as ext-apps#659 proposes; under `experimental`, since the stock App
 * drops what it does not know from `serverResources`; in the host context, by a host that was loaded anew; or as prefab
 * looks for it.
 */
export function canSubscribe(capabilities: object | undefined, context?: object): boolean;

/** The part of an `App` that is used. */
export interface AppLike {
  readServerResource(params: { uri: string }, options?: { timeout?: number }): Promise<ResourceResult>;
  request(request: { method: string; params: { uri: string } }, options?: { timeout?: number }): Promise<unknown>;
  getHostCapabilities(): object | undefined;
  getHostContext?(): object | undefined;
  readonly transport?: object | undefined;
  connect?(...args: never[]): Promise<void>;
}

/** The contents of a resource. */
export interface ResourceResult {
  contents: { uri: string; mimeType?: string | undefined; text?: string; blob?: string }[];
}

export interface WatchOptions {
  /** Least time between two polls, in ms. Default 5,000. */
  interval?: number;
  /** Ends the watch, as `stop` does. */
  signal?: AbortSignal;
  /** Called when a read fails. It is tried again, later and later. */
  onerror?: (error: unknown) => void;
  /** How long the host may take to answer, in ms. Default 10,000. */
  timeout?: number;
  /**
   * How often a View asks a host that can subscribe whether its subscription still exists or can be made now, in ms.
   * Default 30,000. It costs no call of the server.
   */
  recheck?: number;
}

export type Mode = "starting" | "subscribed" | "polling" | "stopped";

export interface ResourceWatch {
  /** How the View learns of changes now. */
  readonly mode: Mode;
  /** Reads now. */
  refresh(): void;
  /** Ends it: unsubscribes if it was the last watch of the URI, and calls back no more. */
  stop(): void;
}
