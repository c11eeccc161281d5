/**
 * Calls back with the contents of `uri`, at once and after each change, until `stop` or the View's teardown. Watches of
 * the same URI share one subscription.
 */
export function watchResource(
  app: AppLike,
  uri: string,
  callback: (result: ResourceResult) => void,
  options?: WatchOptions,
): ResourceWatch;

/**
 * Whether a host announces subscriptions, in any of four places: `serverResources`, as ext-apps#659 proposes;
 * `experimental`, because the stock App drops unknown members of `serverResources`; the host context, where a reloaded
 * host announces them; and `resources`, where prefab looks.
 */
export function canSubscribe(capabilities: object | undefined, context?: object): boolean;

/** The members of an `App` that are used. */
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
  /** Called when a read fails. The read is tried again, after longer and longer pauses. */
  onerror?: (error: unknown) => void;
  /** The longest wait for an answer of the host, in ms. Default 10,000. */
  timeout?: number;
  /**
   * The time after which a View subscribes again, in ms, in case the host has lost or refused its subscription. Default
   * 30,000. Only for hosts that announce subscriptions. It costs no call of the server.
   */
  recheck?: number;
}

export type Mode = "starting" | "subscribed" | "polling" | "stopped";

export interface ResourceWatch {
  /** How changes reach the View now. */
  readonly mode: Mode;
  /** Reads now. */
  refresh(): void;
  /** Ends the watch and its callbacks. Unsubscribes if it was the last watch of the URI. */
  stop(): void;
}
