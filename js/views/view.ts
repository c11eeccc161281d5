/**
 * One View of a server. Its messages pass through `incoming`, the host's messages to it through
 * `outgoing`. It has three states: of its port, of its documents' handshake, and of the check of a
 * document that has loaded.
 */
import { Documents } from "./documents.ts";
import type { Port } from "./host.ts";
import type { Server } from "./server.ts";
import type * as types from "../views.d.ts";
import type { Message, Views, ViewStats } from "../views.d.ts";

/**
 * The key under which Views learn of subscriptions. It is experimental because the stock View SDK
 * (ext-apps 2.0.4) strips unknown members from `serverResources`, where the proposal has it.
 */
export const EXPERIMENTAL: typeof types.EXPERIMENTAL = "io.github.pagewire/resourceSubscriptions";

/**
 * Requests that are always answered here, and requests that are answered here if reads are shared.
 */
const subscriptions = new Set(["resources/subscribe", "resources/unsubscribe"]);
/**
 * Other ways to subscribe: no specification gives them to Views, and they would get round the
 * rules.
 */
const refused = new Set(["subscriptions/listen", "events/stream", "events/subscribe"]);
const reads = new Set(["resources/read", "resources/list", "resources/templates/list"]);
/** Messages that the rules must see, and that are passed on, too. */
const observed = new Set([
  "ui/initialize",
  "ui/notifications/initialized",
  "ui/notifications/request-teardown",
  "notifications/cancelled",
]);

/**
 * The time after a document's `load` in which its handshake may arrive, in ms: Chromium may report
 * the load first although it came last.
 */
const handshakeTime = 50;
/**
 * The id of the `ping` that asks a document whether it is an App, and the longest wait for the
 * answer, in ms.
 */
const PING = "pagewire:ping";
const answerTime = 2000;
/** The most reads and lists whose answers are awaited. */
const maxAwaited = 256;

/**
 * The documents' messages so far. `none`. `messages`: no request. `elsewhere`: requests, but no
 * handshake, which an earlier host has answered. `asked`: a `ui/initialize`. `answered`: that and
 * its answer.
 */
type Handshake = "none" | "messages" | "elsewhere" | "asked" | "answered";

/**
 * The check whether a loaded document is the one that has subscribed. Messages to it are held
 * meanwhile.
 */
interface Check {
  held: Message[];
  timer?: ReturnType<typeof setTimeout>;
}

export class View implements Views {
  readonly ready: Promise<void>;
  /** Posts a message to the View; set once there is a channel. */
  post: ((message: Message) => void) | undefined;
  /** Functions that remove the listeners. */
  undo: (() => void)[] = [];

  readonly #server: Server;
  /** Whether reads are answered here. */
  readonly #shared: boolean;
  /** Undefined if there was no room for it, and when the View is closed. */
  #port: Port | undefined;
  #handshake: Handshake = "none";
  /** The id of the ui/initialize, while it is `asked`. */
  #hello: unknown;
  readonly #documents = new Documents();
  #check: Check | undefined;
  /** Reads and lists that the bridge answers: request id -> the URI read, or "". */
  readonly #awaited = new Map<unknown, string>();
  closed = false;

  constructor(server: Server, shared: boolean) {
    this.#server = server;
    this.#shared = shared;
    this.#open();
    this.ready = this.#port ? Promise.resolve() : Promise.reject(new Error(`pagewire: ${server.host.full}`));
    this.ready.catch(() => {});
  }

  #open(): void {
    this.#port = this.#server.host.open((message) => this.send(message));
  }

  send(message: Message): void {
    if (this.#check) this.#check.held.push(message);
    else if (!this.closed) this.post?.(message);
  }

  /**
   * The frame has loaded a document. If that is not the App that has subscribed, the App's
   * subscriptions end.
   */
  loaded(perhapsSame: boolean): void {
    const document = this.#documents.loaded();
    if (document === "app" || !this.#port) return;
    const ask = this.#handshake !== "none" && (document === "unknown" || perhapsSame);
    this.#decide(handshakeTime, () => {
      if (!ask) return this.#renew();
      this.post?.({ jsonrpc: "2.0", id: PING, method: "ping" });
      this.#decide(answerTime, () => this.#renew());
    });
  }

  #decide(ms: number, decide: () => void): void {
    this.#check ??= { held: [] };
    clearTimeout(this.#check.timer);
    this.#check.timer = setTimeout(decide, ms);
  }

  #endCheck(): Message[] {
    const { held = [], timer } = this.#check ?? {};
    clearTimeout(timer);
    this.#check = undefined;
    return held;
  }

  /** The View's document is gone. The new document in the frame may become a View. */
  #renew(): void {
    this.#endCheck();
    if (this.#handshake === "asked") this.#handshake = "answered"; // its document is gone
    this.#awaited.clear();
    if (!this.#port) return;
    this.#server.host.close(this.#port);
    this.#open();
  }

  /** Looks at a message of the View, and reports whether it is answered here. */
  incoming(message: Message): boolean {
    const { id, method } = message;
    if (this.closed) return false;
    if (!method) {
      if (id !== PING) return false;
      if (this.#check) {
        this.#documents.isApp();
        for (const held of this.#endCheck()) this.send(held);
      }
      return true;
    }
    const request = id !== undefined;
    if (method === "ui/initialize") {
      this.#documents.initialized();
      if (this.#check) this.#documents.isApp();
      this.#endCheck(); // the held messages are for the former document
      this.#handshake = "asked";
      this.#hello = id;
    } else if (this.#handshake === "none" || this.#handshake === "messages") {
      this.#handshake = request ? "elsewhere" : "messages";
      if (request) this.#announce();
    }
    if (request && refused.has(method)) {
      this.send({ jsonrpc: "2.0", id, error: { code: -32601, message: `Method not found: a View has no ${method}` } });
      return true;
    }
    // The bridge answers no cancelled request.
    if (method === "notifications/cancelled") this.#awaited.delete(message.params?.requestId);
    const mine = request && this.#works() && (subscriptions.has(method) || (this.#shared && reads.has(method)));
    if (!mine && request && reads.has(method) && this.#awaited.size < maxAwaited) {
      const uri = method === "resources/read" ? message.params?.uri : "";
      this.#awaited.set(id, typeof uri === "string" ? uri : "");
    }
    if (!mine && !observed.has(method)) return false;
    if (this.#port) this.#server.host.receive(this.#port, message);
    return mine;
  }

  /** Whether requests can be answered here. */
  #works(): boolean {
    return !!this.#port && this.#server.connection.subscribes !== false;
  }

  /**
   * Announces subscriptions to a View in the host context, since its handshake was with another
   * host.
   */
  #announce(): void {
    const { experimental } = this.capabilities<{ experimental?: Record<string, unknown> }>({});
    if (experimental)
      this.send({
        jsonrpc: "2.0",
        method: "ui/notifications/host-context-changed",
        params: { [EXPERIMENTAL]: experimental[EXPERIMENTAL] },
      });
  }

  /** Looks at a message to the View, and returns the message to send. */
  outgoing(message: Message): Message {
    const { id, method } = message;
    if (method === "ui/resource-teardown") this.teardown();
    if (method || id === undefined) return message;
    const uri = this.#awaited.get(id);
    if (uri !== undefined) {
      this.#awaited.delete(id);
      this.#learn(uri, message.result);
    }
    if (this.#handshake !== "asked" || id !== this.#hello) return message;
    this.#handshake = "answered";
    const result = message.result as { hostCapabilities?: object } | undefined;
    if (!result) return message;
    return { ...message, result: { ...result, hostCapabilities: this.capabilities(result.hostCapabilities ?? {}) } };
  }

  #learn(uri: string, result: unknown): void {
    const { contents, resources } = (result ?? {}) as {
      contents?: { uri?: unknown }[];
      resources?: { uri?: unknown }[];
    };
    const { host } = this.#server;
    if (!this.#port || !result) return;
    if (uri) host.learn(uri);
    for (const item of [contents, resources].flat()) if (typeof item?.uri === "string") host.learn(item.uri);
  }

  capabilities<T extends object>(hostCapabilities: T): T {
    if (!this.#works()) return hostCapabilities;
    const { maxSubscriptions } = this.#server.host;
    const { serverResources, experimental } = hostCapabilities as Record<string, object | undefined>;
    return {
      ...hostCapabilities,
      serverResources: { ...serverResources, subscribe: true, maxSubscriptions },
      experimental: { ...experimental, [EXPERIMENTAL]: { maxSubscriptions } },
    };
  }

  teardown(): void {
    if (this.#port) this.#server.host.teardown(this.#port);
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    if (this.#port) this.#server.host.close(this.#port);
    this.#port = undefined;
    this.#endCheck();
    for (const undo of this.undo.splice(0)) undo();
  }

  stats(): ViewStats {
    return this.#server.host.stats();
  }
}
