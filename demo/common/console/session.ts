/**
 * The agent: it connects, lists the page's resources, reads them, subscribes to them, and reads
 * each again when it is notified of a change. It does not draw: it calls a `View`, in the order of
 * its actions.
 *
 * Both protocol versions do the same by different messages. Until 2025-11-25 a client sends
 * `initialize`, and subscribes to each URI; from 2026-07-28 on it sends `server/discover`, and
 * opens one `subscriptions/listen` with a filter of the notifications that it wants.
 */
import { Client, type McpSubscription, type Transport } from "@modelcontextprotocol/client";
import type { Era, View } from "./view.tsx";

export interface SessionOptions {
  /** Whether a changed resource is read again at once. */
  follow: boolean;
  /** The prefix of the URIs to watch: a gateway lists those of other pages, too. */
  within: string;
}

/** The gateway's own tools, which every client of it has. */
const ofTheGateway = new Set(["list_page_resources", "read_page_resource", "wait_for_page_update", "page_changes"]);

export class Session {
  readonly #client: Client;
  /** The URIs listed now. */
  #listed = new Set<string>();
  /**
   * The subscribed URIs. A URI stays here while its resource is away, because the resource may come
   * back.
   */
  #subscribed = new Set<string>();
  /** The modern era's one subscription. */
  #listen: McpSubscription | undefined;
  /** Reads under way, by URI; true if the resource has changed meanwhile. */
  #reading = new Map<string, boolean>();
  /**
   * The last task. The next one runs after it, so that lists and subscriptions change one at a
   * time.
   */
  #last: Promise<void> = Promise.resolve();
  /** For good. After it the view is told nothing. */
  #closed = false;

  constructor(
    private readonly era: Era,
    private readonly transport: Transport,
    private readonly view: View,
    private readonly options: SessionOptions,
  ) {
    this.#client = new Client(
      { name: "pagewire-demo-console", version: "1.0.0" },
      era === "modern" ? { versionNegotiation: { mode: { pin: "2026-07-28" } } } : {},
    );
    this.#client.setNotificationHandler("notifications/resources/updated", ({ params }) => {
      view.updated(params.uri);
      if (options.follow) void this.read(params.uri);
    });
    this.#client.setNotificationHandler("notifications/resources/list_changed", () => {
      view.listChanged();
      void this.#guard(this.#survey());
    });
    this.#client.setNotificationHandler("notifications/tools/list_changed", () => void this.#guard(this.#survey()));
    // The client reports the error first, and then the end.
    let reason = new Error("the connection was closed");
    this.#client.onerror = (error) => (reason = error);
    this.#client.onclose = () => this.#fail(reason);
  }

  /** Connects, and watches the page until `close`. */
  start(): Promise<void> {
    const connect = async () => {
      await this.#client.connect(this.transport);
      this.view.connected(
        this.#client.getNegotiatedProtocolVersion() ?? "unknown",
        this.#client.getServerVersion()?.name ?? "unknown",
      );
      await this.#survey();
    };
    return this.#guard(connect());
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#client.close();
    await this.transport.close(); // a client that is still connecting does not hold it yet
  }

  /** Lists the resources, reads the new ones, and subscribes to them. */
  #survey(): Promise<void> {
    return (this.#last = this.#last.then(async () => {
      const { tools } = this.#client.getServerCapabilities()?.tools ? await this.#client.listTools() : { tools: [] };
      this.view.offered(tools.filter(({ name }) => !ofTheGateway.has(name)));
      const listed = (await this.#client.listResources()).resources;
      const resources = listed.filter(({ uri }) => uri.startsWith(this.options.within));
      const before = this.#listed;
      this.#listed = new Set(resources.map((resource) => resource.uri));
      this.view.listed(resources);
      const fresh = [...this.#listed].filter((uri) => !before.has(uri));
      await this.#readAll(fresh);
      // A change between the read and the subscription was not announced.
      if (await this.#subscribe(fresh)) await this.#readAll(fresh);
    }));
  }

  /** Calls one of the page's tools. */
  async call(name: string, input: object): Promise<void> {
    try {
      const result = await this.#client.callTool({ name, arguments: { ...input } });
      const texts = result.content.map((part) => ("text" in part ? part.text : `(${part.type})`));
      this.view.called(name, texts.join("\n"), result.isError === true);
    } catch (error) {
      this.view.called(name, explain(error), true);
    }
  }

  /** Subscribes to those of `uris` that are not subscribed yet; returns whether there were any. */
  async #subscribe(uris: string[]): Promise<boolean> {
    const added = uris.filter((uri) => !this.#subscribed.has(uri));
    for (const uri of added) this.#subscribed.add(uri);
    if (this.era === "legacy") {
      await Promise.all(added.map((uri) => this.#client.subscribeResource({ uri })));
    } else if (added.length > 0 || !this.#listen) {
      // A filter cannot be changed: open one with the new URIs too, and close the old one only
      // then.
      const old = this.#listen;
      this.#listen = await this.#client.listen({
        resourcesListChanged: true,
        resourceSubscriptions: [...this.#subscribed],
      });
      await old?.close();
    }
    this.view.subscribed([...this.#subscribed]);
    return added.length > 0;
  }

  async #readAll(uris: string[]): Promise<void> {
    await Promise.all(uris.map((uri) => this.read(uri)));
  }

  /**
   * Reads a resource, and once more if it changed meanwhile. It never reads one URI twice at a
   * time. It does not reject: one resource that cannot be read must not end the session.
   */
  async read(uri: string): Promise<void> {
    if (this.#reading.has(uri)) {
      this.#reading.set(uri, true);
      return;
    }
    do {
      this.#reading.set(uri, false);
      const start = performance.now();
      try {
        const { contents } = await this.#client.readResource({ uri });
        const took = performance.now() - start;
        const text = contents.map((part) =>
          "text" in part ? part.text : `(${part.blob.length} characters of base64)`,
        );
        this.view.read(uri, { text: text.join("\n"), took });
      } catch (error) {
        if (!this.#closed) this.view.unreadable(uri, explain(error));
      }
    } while (this.#reading.get(uri) && !this.#closed);
    this.#reading.delete(uri);
  }

  async #guard(work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    if (this.#closed) return;
    this.#closed = true;
    this.view.failed(explain(error));
    void this.close();
  }
}

function explain(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
