/**
 * One View of a server. Its messages pass through `incoming`, the host's messages to it through `outgoing`. It has
 * three states: of its port in the core, of its documents' handshake, and of the check of a document that has loaded.
 */
import { Documents } from "./documents.ts";
import type { CoreHost } from "./edge.ts";
import type { Server } from "./server.ts";
import type * as types from "../views.d.ts";
import type { Message, Views, ViewStats } from "../views.d.ts";

/** The key under which Views learn of subscriptions; bridge/view says why it is experimental. */
export const EXPERIMENTAL: typeof types.EXPERIMENTAL = "io.github.pagewire/resourceSubscriptions";

/** Requests that are always answered here, and requests that are answered here if reads are shared. */
const subscriptions = new Set(["resources/subscribe", "resources/unsubscribe", "subscriptions/listen"]);
const reads = new Set(["resources/read", "resources/list", "resources/templates/list"]);
/** Messages that go to the core, and are passed on, too. */
const observed = new Set([
  "ui/initialize",
  "ui/notifications/initialized",
  "ui/notifications/request-teardown",
  "notifications/cancelled",
]);

/**
 * The time after a document's `load` in which its handshake may arrive, in ms: Chromium may report the load first
 * although it came last.
 */
const handshakeTime = 50;
/** The id of the `ping` that asks a document whether it is an App, and the longest wait for the answer, in ms. */
const PING = "pagewire:ping";
const answerTime = 2000;
/** The most reads and lists whose answers are awaited. */
const maxAwaited = 256;

/** `starting`: messages wait for the core. `refused`: for good, since there is no core, or no room in it. */
type Port = "starting" | "open" | "refused" | "closed";

/**
 * The documents' messages so far. `none`. `messages`: no request. `elsewhere`: requests, but no handshake, which an
 * earlier host has answered. `asked`: a `ui/initialize`. `answered`: that and its answer.
 */
type Handshake = "none" | "messages" | "elsewhere" | "asked" | "answered";

/** The check whether a loaded document is the one that has subscribed. Messages to it are held meanwhile. */
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
  #id: number;
  #port: Port = "starting";
  #waiting: Message[] = [];
  #handshake: Handshake = "none";
  /** The id of the ui/initialize, while it is `asked`. */
  #hello: unknown;
  readonly #documents = new Documents();
  #check: Check | undefined;
  /** Reads and lists that the bridge answers: request id -> the URI read, or "". */
  readonly #awaited = new Map<unknown, string>();

  constructor(server: Server, shared: boolean) {
    this.#server = server;
    this.#shared = shared;
    this.ready = server.ready;
    this.#id = server.add(this);
    if (server.host) this.begin(server.host);
    else server.ready.catch((cause: unknown) => this.#refuse(String(cause)));
  }

  get closed(): boolean {
    return this.#port === "closed";
  }

  get #host(): CoreHost | undefined {
    return this.#port === "open" ? this.#server.host : undefined;
  }

  /** The core has started. */
  begin(host: CoreHost): void {
    if (this.closed) return;
    if (!host.open(this.#id)) return this.#refuse("too many Views");
    this.#port = "open";
    for (const message of this.#waiting.splice(0)) host.receive(this.#id, JSON.stringify(message));
  }

  /** Answers the requests that waited for the core with an error. From now on the bridge answers. */
  #refuse(why: string): void {
    if (this.closed) return;
    this.#port = "refused";
    for (const { id, method } of this.#waiting.splice(0)) {
      if (id !== undefined && method !== "ui/initialize")
        this.send({ jsonrpc: "2.0", id, error: { code: -32603, message: `Subscriptions do not work here: ${why}` } });
    }
  }

  send(message: Message): void {
    if (this.#check) this.#check.held.push(message);
    else if (!this.closed) this.post?.(message);
  }

  /** The frame has loaded a document. If that is not the App that has subscribed, the App's subscriptions end. */
  loaded(perhapsSame: boolean): void {
    const document = this.#documents.loaded();
    if (document === "app" || this.closed || this.#port === "refused") return;
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
    this.#waiting = [];
    const host = this.#host;
    host?.shut(this.#id);
    this.#server.views.delete(this.#id);
    this.#id = this.#server.add(this);
    if (host && !host.open(this.#id)) this.#refuse("too many Views");
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
      if (request) void this.#announce();
    }
    const mine = request && this.#works() && (subscriptions.has(method) || (this.#shared && reads.has(method)));
    if (!mine && request && reads.has(method) && this.#awaited.size < maxAwaited) {
      const uri = method === "resources/read" ? message.params?.uri : "";
      this.#awaited.set(id, typeof uri === "string" ? uri : "");
    }
    if (!mine && !observed.has(method)) return false;
    if (this.#port === "starting") this.#waiting.push(message);
    else this.#host?.receive(this.#id, JSON.stringify(message));
    return mine;
  }

  /** Whether requests can be answered here, now or when the core has started. */
  #works(): boolean {
    return this.#port !== "refused" && this.#server.state !== "failed" && this.#server.connection.subscribes();
  }

  /** Announces subscriptions to a View in the host context, since its handshake was with another host. */
  async #announce(): Promise<void> {
    await this.ready.catch(() => {});
    const { experimental } = this.capabilities<{ experimental?: Record<string, unknown> }>({});
    if (experimental)
      this.send({
        jsonrpc: "2.0",
        method: "ui/notifications/host-context-changed",
        params: { [EXPERIMENTAL]: experimental[EXPERIMENTAL] },
      });
  }

  /**
   * Looks at a message to the View, and returns the message to send: the answer to the handshake when the core has
   * started, any other message at once.
   */
  outgoing(message: Message): Message | Promise<Message> {
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
    return this.ready.then(
      () => {
        const result = message.result as { hostCapabilities?: object } | undefined;
        return result
          ? { ...message, result: { ...result, hostCapabilities: this.capabilities(result.hostCapabilities ?? {}) } }
          : message;
      },
      () => message,
    );
  }

  #learn(uri: string, result: unknown): void {
    const { contents, resources } = (result ?? {}) as {
      contents?: { uri?: unknown }[];
      resources?: { uri?: unknown }[];
    };
    const host = this.#host;
    if (!host || !result) return;
    if (uri) host.learn(uri);
    for (const item of [contents, resources].flat()) if (typeof item?.uri === "string") host.learn(item.uri);
  }

  capabilities<T extends object>(hostCapabilities: T): T {
    const host = this.#server.host;
    if (!host || this.closed || !this.#works()) return hostCapabilities;
    const ours = JSON.parse(host.capabilities()) as Record<string, object>;
    const merged: Record<string, unknown> = { ...(hostCapabilities as Record<string, unknown>) };
    for (const [key, value] of Object.entries(ours)) merged[key] = { ...(merged[key] as object | undefined), ...value };
    return merged as T;
  }

  teardown(): void {
    this.#host?.teardown(this.#id);
  }

  close(): void {
    if (this.closed) return;
    this.#host?.shut(this.#id);
    this.#port = "closed";
    this.#waiting = [];
    this.#endCheck();
    this.#server.remove(this.#id);
    for (const undo of this.undo.splice(0)) undo();
  }

  stats(): ViewStats {
    return JSON.parse(this.#server.host?.stats() ?? "{}") as ViewStats;
  }
}
