/**
 * Calls back with the contents, at once and after each change, until `stop` or the View's teardown. Watches of one URI
 * share a subscription.
 */
export function watchResource(
  app: AppLike,
  uri: string,
  callback: (result: ResourceResult) => void,
  options?: WatchOptions,
): ResourceWatch;

/** Whether a host announces subscriptions, in any of the places where hosts do. */
export function canSubscribe(capabilities: object | undefined, context?: object): boolean;

/** An `App` of @modelcontextprotocol/ext-apps 2.x. */
export interface AppLike {
  readServerResource(params: { uri: string }, options?: { timeout?: number }): Promise<ResourceResult>;
  request(request: { method: string; params: { uri: string } }, options?: { timeout?: number }): Promise<unknown>;
  getHostCapabilities(): object | undefined;
  getHostContext?(): object | undefined;
  readonly transport?: object | undefined;
  connect?(...args: never[]): Promise<void>;
}

export interface ResourceResult {
  contents: { uri: string; mimeType?: string | undefined; text?: string; blob?: string }[];
}

export interface WatchOptions {
  /** Between two polls, in ms. Default 5,000. */
  interval?: number;
  /** Ends the watch. */
  signal?: AbortSignal;
  /** Called when a read fails. Retries come less and less often. */
  onerror?: (error: unknown) => void;
  /** Of a request to the host, in ms. Default 10,000. */
  timeout?: number;
  /** Time until it subscribes again, in case the host lost that, in ms. Default 30,000. */
  recheck?: number;
}

export type Mode = "starting" | "subscribed" | "polling" | "stopped";

export interface ResourceWatch {
  readonly mode: Mode;
  /** Reads now. */
  refresh(): void;
  /** Ends the watch; the last one of a URI unsubscribes. */
  stop(): void;
}
