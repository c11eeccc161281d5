/**
 * `pagewire/view`: live resources for a View of an MCP App. `watchResource` subscribes if the host
 * can do that, and otherwise polls. The View need not know which.
 *
 * It takes the stock `App` of @modelcontextprotocol/ext-apps 2.x as it is, before or after it is
 * connected, and listens to the App's transport: the App keeps its handlers. It calls back only
 * when the resource's contents have changed.
 *
 * It never subscribes at a host that does not announce subscriptions, never polls while the View is
 * hidden, and never runs two reads of one resource at once, since the answers could come in the
 * wrong order.
 */

import type * as types from "../view.d.ts";
import type { AppLike, Mode, ResourceResult, WatchOptions } from "../view.d.ts";

export const watchResource: typeof types.watchResource = (app, uri, callback, options = {}) => {
  const watcher: Watcher = { callback, onerror: options.onerror };
  const topic = Link.of(app).topic(uri, options);
  const { signal } = options;
  const stop = (): void => {
    signal?.removeEventListener("abort", stop);
    topic.remove(watcher);
  };
  if (!signal?.aborted) {
    signal?.addEventListener("abort", stop);
    topic.add(watcher);
  }
  return {
    get mode() {
      return topic.has(watcher) ? topic.mode : "stopped";
    },
    refresh: () => void (topic.has(watcher) && topic.read()),
    stop,
  };
};

/**
 * The key by which Pagewire's hosts announce subscriptions; js/views/view.ts says why it is
 * experimental.
 */
const KEY = "io.github.pagewire/resourceSubscriptions";

export const canSubscribe: typeof types.canSubscribe = (capabilities, context) => {
  const c = (capabilities ?? {}) as {
    serverResources?: { subscribe?: unknown };
    resources?: { subscribe?: unknown };
    experimental?: Record<string, unknown>;
  };
  return (
    c.serverResources?.subscribe === true ||
    c.resources?.subscribe === true ||
    !!c.experimental?.[KEY] ||
    !!(context as Record<string, unknown> | undefined)?.[KEY]
  );
};

interface Watcher {
  callback: (result: ResourceResult) => void;
  onerror: ((error: unknown) => void) | undefined;
}

interface Message {
  id?: unknown;
  method?: string;
  params?: { uri?: unknown; [key: string]: unknown };
}

/** The connection of one App, which all its watches share. */
class Link {
  static readonly #known = new WeakMap<AppLike, Link>();

  static of(app: AppLike): Link {
    let link = Link.#known.get(app);
    if (!link) Link.#known.set(app, (link = new Link(app)));
    return link;
  }

  /**
   * The host has refused to subscribe although it has announced subscriptions. Reset when it
   * announces them again.
   */
  refuses = false;
  /** By URI. Each has at least one watcher. */
  readonly topics = new Map<string, Topic>();
  /** The transport whose messages are taken; undefined before the App connects. */
  #tapped: object | undefined;

  constructor(readonly app: AppLike) {
    this.#tap();
    const connect = app.connect;
    if (connect) {
      app.connect = async (...args) => {
        await connect.apply(app, args);
        this.#tap();
        this.#resync();
      };
    } else if (!this.#tapped) {
      // Not an App: the host posts to the window.
      addEventListener("message", ({ source, data }) => {
        if (source === window.parent && data?.jsonrpc === "2.0") this.#receive(data as Message);
      });
    }
    document.addEventListener("visibilitychange", () => {
      for (const topic of this.topics.values()) topic.visibility();
    });
  }

  get connected(): boolean {
    return !!this.app.transport || !this.app.connect;
  }

  topic(uri: string, options: WatchOptions): Topic {
    return this.topics.get(uri) ?? new Topic(this, uri, options);
  }

  supported(): boolean {
    return !this.refuses && canSubscribe(this.app.getHostCapabilities(), this.app.getHostContext?.());
  }

  /** Listens to the App's transport. */
  #tap(): void {
    const transport = this.app.transport as { onmessage?: (...args: unknown[]) => void } | undefined;
    if (!transport || transport === this.#tapped) return;
    this.#tapped = transport;
    const { onmessage } = transport;
    transport.onmessage = (message, ...rest) => {
      // The App goes first, so that its state has a change of the host context when it is asked.
      onmessage?.call(transport, message, ...rest);
      this.#receive(message as Message);
    };
  }

  #receive({ method, params }: Message): void {
    switch (method) {
      case "notifications/resources/updated":
      case "ui/notifications/resource-updated": // prefab's and fastmcp's name
        if (typeof params?.uri === "string") this.topics.get(params.uri)?.updated();
        break;
      case "ui/notifications/host-context-changed":
        // The App applies it a microtask or two later.
        if (params && KEY in params) setTimeout(() => this.#resync(), 0);
        break;
      case "ui/resource-teardown":
        for (const topic of [...this.topics.values()]) topic.end();
        break;
    }
  }

  /** Chooses again, since the host is another one, or can do more than before. */
  #resync(): void {
    this.refuses = false;
    for (const topic of this.topics.values()) topic.choose();
  }
}

/** One URI that an App watches. */
class Topic {
  mode: Mode = "starting";
  readonly #watchers = new Set<Watcher>();
  /** The next read: a poll, or a failed read again. */
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** The next attempt to subscribe. */
  #rechecking: ReturnType<typeof setTimeout> | undefined;
  /** What the watchers were given last. */
  #last: { text: string; result: ResourceResult } | undefined;
  /** At most one read runs at a time. `again` asks for another one after it. */
  #reading = false;
  #again = false;
  /** Reads in a row with the contents before, and failed reads in a row. */
  #unchanged = 0;
  #failures = 0;
  /** Counts the choices: the answer to an earlier one has no effect. */
  #choice = 0;

  constructor(
    private readonly link: Link,
    private readonly uri: string,
    private readonly options: WatchOptions,
  ) {}

  has(watcher: Watcher): boolean {
    return this.#watchers.has(watcher);
  }

  add(watcher: Watcher): void {
    this.link.topics.set(this.uri, this);
    this.#watchers.add(watcher);
    if (this.#watchers.size === 1) this.choose();
    else if (this.#last) guarded(() => watcher.callback(this.#last!.result));
  }

  remove(watcher: Watcher): void {
    if (!this.#watchers.delete(watcher) || this.#watchers.size) return;
    const was = this.mode;
    this.end();
    // Also while the host has not answered: it may be about to subscribe.
    if (was === "subscribed" || this.link.supported()) void this.#request("resources/unsubscribe").catch(() => {});
  }

  /** Ends it, without a message to the host. */
  end(): void {
    this.#choice++;
    this.mode = "stopped";
    clearTimeout(this.#timer);
    clearTimeout(this.#rechecking);
    this.#watchers.clear();
    this.link.topics.delete(this.uri);
  }

  /**
   * Subscribes if the host can, otherwise polls; and reads, since the contents shown may be old.
   */
  choose(): void {
    const choice = ++this.#choice;
    clearTimeout(this.#timer);
    clearTimeout(this.#rechecking);
    this.mode = "starting";
    if (!this.link.connected) return; // connecting chooses again
    void this.#subscribe(choice).then((subscribed) => {
      if (choice !== this.#choice) return;
      this.mode = subscribed ? "subscribed" : "polling";
      void this.read();
      this.#recheckLater();
    });
  }

  async #subscribe(choice: number): Promise<boolean> {
    if (!this.link.supported()) return false;
    try {
      await this.#request("resources/subscribe");
      return true;
    } catch (error) {
      const { code } = error as { code?: unknown };
      if (code === -32601) this.link.refuses = true;
      // The host may learn of the resource by a read of it.
      if (code !== -32002 && code !== -32602) return false;
      await this.read();
      if (choice !== this.#choice) return false;
      return this.#request("resources/subscribe").then(
        () => true,
        () => false,
      );
    }
  }

  #request(method: string): Promise<unknown> {
    return this.link.app.request({ method, params: { uri: this.uri } }, { timeout: this.options.timeout ?? 10_000 });
  }

  /** The host has announced a change. */
  updated(): void {
    if (this.mode !== "stopped") void this.read();
  }

  /** A hidden View does not poll; one that is shown again polls at once. */
  visibility(): void {
    if (document.hidden) {
      if (this.mode === "polling") clearTimeout(this.#timer);
    } else if (this.mode === "polling") void this.read();
  }

  /**
   * Reads, and calls back if the contents have changed. A read that is asked for during another one
   * follows it.
   */
  async read(): Promise<void> {
    if (this.#reading) {
      this.#again = true;
      return;
    }
    this.#reading = true;
    clearTimeout(this.#timer);
    do {
      this.#again = false;
      try {
        const result = await this.link.app.readServerResource(
          { uri: this.uri },
          { timeout: this.options.timeout ?? 10_000 },
        );
        this.#failures = 0;
        this.#show(result);
      } catch (error) {
        this.#failures++;
        for (const watcher of [...this.#watchers]) guarded(() => watcher.onerror?.(error));
      }
    } while (this.#again && this.#watchers.size);
    this.#reading = false;
    this.#schedule();
  }

  #show(result: ResourceResult): void {
    if (!this.#watchers.size) return;
    const text = JSON.stringify(result.contents);
    if (text === this.#last?.text) {
      this.#unchanged++;
      return;
    }
    this.#unchanged = 0;
    this.#last = { text, result };
    for (const watcher of [...this.#watchers]) guarded(() => watcher.callback(result));
  }

  /** Schedules the next read: the next poll, or a failed read again. */
  #schedule(): void {
    clearTimeout(this.#timer);
    const { interval = 5000 } = this.options;
    // A hidden View waits for `visibility`. A subscribed View repeats only failed reads.
    if (this.mode === "polling" ? document.hidden : this.mode !== "subscribed" || !this.#failures) return;
    const later = this.#failures
      ? Math.min(interval * 2 ** this.#failures, Math.max(interval, 60_000))
      : // A resource that was unchanged ten times in a row is read half as often; after twenty times, a quarter.
        interval * Math.min(4, 2 ** Math.floor(this.#unchanged / 10));
    this.#timer = setTimeout(() => void this.read(), later);
  }

  #recheckLater(): void {
    if (this.link.supported())
      this.#rechecking = setTimeout(() => void this.#recheck(), this.options.recheck ?? 30_000);
  }

  /**
   * Subscribes again. A subscribed View stays subscribed, even if the host had forgotten it. For a
   * View that polls, a host that was too busy before may subscribe now.
   */
  async #recheck(): Promise<void> {
    const choice = this.#choice;
    let subscribed = true;
    try {
      await this.#request("resources/subscribe");
    } catch (error) {
      subscribed = false;
      if ((error as { code?: unknown }).code === -32601) this.link.refuses = true;
    }
    if (choice !== this.#choice) return;
    if (this.mode === (subscribed ? "subscribed" : "polling")) this.#recheckLater();
    else this.choose();
  }
}

/**
 * Calls back. An exception of the callback is reported on the console, and does not reach the
 * caller.
 */
function guarded(callback: () => void): void {
  try {
    callback();
  } catch (error) {
    reportError(error);
  }
}
