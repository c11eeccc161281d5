/**
 * `pagewire/views`: lets the Views of an MCP Apps host subscribe to resources of the server that they came from, as
 * ext-apps#659 proposes. `attachViews` adds that to an `AppBridge` of @modelcontextprotocol/ext-apps 2.x, or to a host
 * that talks to its frames by postMessage itself.
 *
 * The rules are those of the Go package bridge/view, which runs here as wasm, once for all servers and Views of the
 * page. What is not about subscriptions passes through untouched; the bridge keeps its handlers and does not know of
 * this.
 *
 * It never reads a resource by itself, nor carries anything from one server to another's Views. It loads no wasm before
 * the first `attachViews`, and announces subscriptions only when they work.
 */
import { Documents } from "./documents.ts";
import { start, type Core, type CoreHost } from "./edge.ts";
import { isElement, watchFrame } from "./frames.ts";
import { isMessage } from "./message.ts";
import { connectionTo, type Connection, type TransportLike } from "./upstream.ts";
import type * as types from "../views.d.ts";
import type { AttachOptions, BridgeLike, ClientLike, Message, Upstream, Views, ViewStats } from "../views.d.ts";

/** bridge/view says why. */
export const EXPERIMENTAL: typeof types.EXPERIMENTAL = "io.github.pagewire/resourceSubscriptions";

/** Requests that are answered here, always; and those that are where reads are shared. */
const subscriptions = new Set(["resources/subscribe", "resources/unsubscribe", "subscriptions/listen"]);
const reads = new Set(["resources/read", "resources/list", "resources/templates/list"]);
/** What is seen here, and passed on. */
const observed = new Set([
  "ui/initialize",
  "ui/notifications/initialized",
  "ui/notifications/request-teardown",
  "notifications/cancelled",
]);

/**
 * How long after a document's `load` its handshake may be heard, in ms: Chromium tells of the load first, also where it
 * was last.
 */
const handshakeTime = 50;
/** The id of the `ping` by which a document is asked whether it is an App, and how long its answer may take, in ms. */
const PING = "pagewire:ping";
const answerTime = 2000;

export const attachViews: typeof types.attachViews = (bridge, upstream, options = {}) => {
  const server = Server.of(upstream, options);
  return isBridge(bridge) ? attachBridge(bridge, server, options) : attachFrame(bridge, server, options);
};

function isBridge(target: BridgeLike | HTMLIFrameElement | Window): target is BridgeLike {
  // Of a window of another origin nothing may be asked but what is in every window.
  return typeof (target as Window).postMessage !== "function" && typeof (target as BridgeLike).connect === "function";
}

let core: { url: string; started: Promise<Core> } | undefined;

/** The core at a URL, started once; again after a start that failed, or a core that has died. */
function coreAt(url: string): Promise<Core> {
  if (core?.url !== url) {
    const mine = { url, started: start(url) };
    core = mine;
    mine.started.catch(() => {
      if (core === mine) core = undefined;
    });
  }
  return core!.started;
}

/** A server that Views came from, and its host in the core. */
class Server {
  static readonly #known = new WeakMap<object, Server>();

  /** One for each upstream, so that its Views share its subscriptions. The options of the first attachment count. */
  static of(upstream: Upstream | ClientLike, options: AttachOptions): Server {
    let server = Server.#known.get(upstream);
    if (!server || server.failed || server.ended)
      Server.#known.set(upstream, (server = new Server(server?.connection ?? connectionTo(upstream), options)));
    return server;
  }

  readonly connection: Connection;
  readonly ready: Promise<void>;
  readonly views = new Map<number, View>();
  host: CoreHost | undefined;
  /** The core could not be started, or has died. */
  failed = false;
  /** There was neither a View nor a connection left. */
  ended = false;
  #connected = true;
  #last = 0;

  constructor(connection: Connection, options: AttachOptions) {
    this.connection = connection;
    this.ready = this.#start(options);
    this.ready.catch(() => {});
  }

  async #start(o: AttachOptions): Promise<void> {
    const url = new URL(o.wasm ?? new URL("./pagewire.views.wasm", import.meta.url), location.href).href;
    try {
      const make = await coreAt(url);
      const era = this.connection.era();
      this.host = make(this.#home(), {
        era: era === "modern" ? 1 : 0,
        maxSubscriptions: o.maxSubscriptions ?? 0,
        limitCode: o.limitCode ?? 0,
        updateInterval: o.updatesPerSecond ? Math.ceil(1000 / o.updatesPerSecond) : 0,
        readTimeout: o.timeout ?? 0,
      });
      if (!era) this.host.connection(-1);
    } catch (cause) {
      this.failed = true;
      throw cause;
    }
    this.connection.listen(
      (m) => this.host?.fromServer(JSON.stringify(m)) ?? false,
      (era) => {
        this.#connected = era !== null;
        this.host?.connection(era === null ? -1 : era === "modern" ? 1 : 0);
        this.#endIfIdle();
      },
    );
    this.#connected = this.connection.era() !== undefined;
    for (const view of this.views.values()) view.begin(this.host);
  }

  /** Lets go of the host in the core when nobody can need it: a page may have many clients one after the other. */
  #endIfIdle(): void {
    if (this.views.size || this.#connected || !this.host) return;
    this.host.end();
    this.host = undefined;
    this.ended = true;
  }

  #home() {
    return {
      toView: (id: number, text: string) => this.views.get(id)?.send(JSON.parse(text) as Message),
      toServer: (text: string) => this.connection.send(JSON.parse(text) as Message),
      dead: (reason: string) => {
        // Subscriptions are gone. Views that notice, by an error or a change of the host, poll; the next attachment
        // starts a new core.
        console.error(`pagewire: ${reason}: Views are no longer told of changes`);
        this.host = undefined;
        this.failed = true;
        core = undefined;
      },
    };
  }

  add(view: View): number {
    this.views.set(++this.#last, view);
    return this.#last;
  }

  remove(id: number): void {
    this.views.delete(id);
    this.#endIfIdle();
  }
}

/** One View: what it sends passes through `incoming`, what the host sends it through `outgoing`. */
class View implements Views {
  readonly ready: Promise<void>;
  /** Posts a message to the View; set when there is a channel. */
  post: ((message: Message) => void) | undefined;
  closed = false;
  /** What ends the listening. */
  undo: (() => void)[] = [];

  readonly #server: Server;
  #id: number;
  readonly #shared: boolean;
  /** What came before the core was there. */
  #early: Message[] | undefined = [];
  #refused = false;
  /** The id of a ui/initialize that waits for its answer. */
  #hello: unknown;
  #greeted = false;
  #announced = false;
  /** It has sent something. */
  #heard = false;
  readonly #documents = new Documents();
  /** What is not sent before it is known whether the document in the frame is the one that asked for it. */
  #held: Message[] | undefined;
  #deciding: ReturnType<typeof setTimeout> | undefined;
  /** Reads and lists that the bridge answers: request id -> the URI read, or "". */
  readonly #observed = new Map<unknown, string>();

  constructor(server: Server, shared: boolean) {
    this.#server = server;
    this.#shared = shared;
    this.ready = server.ready;
    this.#id = server.add(this);
    if (server.host) this.begin(server.host);
    else server.ready.catch((cause: unknown) => this.#refuse(String(cause)));
  }

  /** What waited for the core gets an error, and the bridge has the rest. */
  #refuse(why: string): void {
    const early = this.#early ?? [];
    this.#early = undefined;
    this.#refused = true;
    for (const { id, method } of early) {
      if (id !== undefined && method !== "ui/initialize")
        this.send({ jsonrpc: "2.0", id, error: { code: -32603, message: `Subscriptions do not work here: ${why}` } });
    }
  }

  get #host(): CoreHost | undefined {
    return this.#early ? undefined : this.#server.host;
  }

  /** The core is there. */
  begin(host: CoreHost): void {
    if (this.closed) return;
    if (!host.open(this.#id)) return this.#refuse("too many Views");
    const early = this.#early ?? [];
    this.#early = undefined;
    for (const message of early) host.receive(this.#id, JSON.stringify(message));
  }

  send(message: Message): void {
    if (this.#held) this.#held.push(message);
    else if (!this.closed) this.post?.(message);
  }

  /** The frame has loaded a document. If that is not the App that has subscribed, what was subscribed to is over. */
  loaded(perhapsSame: boolean): void {
    const document = this.#documents.loaded();
    if (document === "app" || this.closed || this.#refused) return;
    const ask = this.#heard && (document === "unknown" || perhapsSame);
    this.#held ??= [];
    this.#decide(handshakeTime, () => {
      if (!ask) return this.#renew();
      this.post?.({ jsonrpc: "2.0", id: PING, method: "ping" });
      this.#decide(answerTime, () => this.#renew());
    });
  }

  #decide(ms: number, decide: () => void): void {
    clearTimeout(this.#deciding);
    this.#deciding = setTimeout(decide, ms);
  }

  /** The document that has loaded is an App: it is sent what was held for it. */
  #isApp(held: Message[]): void {
    this.#documents.isApp();
    this.#held = undefined;
    clearTimeout(this.#deciding);
    for (const message of held) this.send(message);
  }

  /** The document that was the View is gone; the one that is there may become it. */
  #renew(): void {
    this.#held = undefined;
    this.#hello = undefined;
    this.#observed.clear();
    if (this.#early) this.#early = [];
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
      if (this.#held) this.#isApp(this.#held);
      return true;
    }
    this.#heard = true;
    if (method === "ui/initialize") {
      this.#documents.initialized();
      if (this.#held) this.#isApp([]); // what was held is the former document's
      this.#greeted = true;
      this.#hello = id;
    } else if (id !== undefined && !this.#greeted) {
      void this.#announce();
    }
    const mine =
      id !== undefined && this.#works() && (subscriptions.has(method) || (this.#shared && reads.has(method)));
    if (!mine && id !== undefined && reads.has(method) && this.#observed.size < 256) {
      const uri = method === "resources/read" ? message.params?.uri : "";
      this.#observed.set(id, typeof uri === "string" ? uri : "");
    }
    if (!mine && !observed.has(method)) return false;
    if (this.#early) this.#early.push(message);
    else this.#host?.receive(this.#id, JSON.stringify(message));
    return mine;
  }

  /** Whether requests can be answered here, now or when the core is there. */
  #works(): boolean {
    return !this.#refused && !this.#server.failed && this.#server.connection.subscribes();
  }

  /**
   * The View made its handshake with a host before this one, which has been loaded anew under it: it is told by way of
   * the host context, since no second handshake will tell it.
   */
  async #announce(): Promise<void> {
    if (this.#announced) return;
    this.#announced = true;
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
   * Looks at a message to the View, and returns what is to be sent: at once, but for the answer to the handshake, which
   * waits for the core.
   */
  outgoing(message: Message): Message | Promise<Message> {
    const { id, method } = message;
    if (method === "ui/resource-teardown") this.teardown();
    if (method || id === undefined) return message;
    const uri = this.#observed.get(id);
    if (uri !== undefined) {
      this.#observed.delete(id);
      this.#learn(uri, message.result);
    }
    if (this.#hello === undefined || id !== this.#hello) return message;
    this.#hello = undefined;
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
    if (!host || !this.#works()) return hostCapabilities;
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
    this.closed = true;
    this.#early = undefined;
    this.#held = undefined;
    clearTimeout(this.#deciding);
    this.#server.remove(this.#id);
    for (const undo of this.undo.splice(0)) undo();
  }

  stats(): ViewStats {
    return JSON.parse(this.#server.host?.stats() ?? "{}") as ViewStats;
  }
}

/** A transport as an AppBridge takes it. */
interface Transport extends TransportLike {
  start(): Promise<void>;
  send(message: Message, options?: unknown): Promise<void>;
  close(): Promise<void>;
  onmessage?: ((message: Message, extra?: unknown) => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
}

function attachBridge(bridge: BridgeLike, server: Server, options: AttachOptions): Views {
  const view = new View(server, options.reads === "shared");
  const follow = (transport: object): void => {
    // PostMessageTransport has the window as eventTarget; of another transport nothing is known.
    const frame = options.frame ?? (transport as { eventTarget?: Window }).eventTarget;
    if (frame) view.undo.push(watchFrame(frame, view));
  };
  if (bridge.transport) {
    const transport = bridge.transport as Transport;
    const { onmessage, onclose } = transport;
    const send = transport.send.bind(transport);
    view.post = (m) => void send(m).catch(() => {});
    transport.onmessage = (m, extra) => {
      if (!isMessage(m) || !view.incoming(m)) onmessage?.call(transport, m, extra);
    };
    transport.send = async (m, o) => send(isMessage(m) ? await view.outgoing(m) : m, o);
    transport.onclose = () => {
      view.close();
      onclose?.call(transport);
    };
    follow(transport);
    return view;
  }
  const connect = bridge.connect as (transport: Transport, ...rest: unknown[]) => Promise<void>;
  bridge.connect = ((transport: Transport, ...rest: unknown[]) => {
    // A bridge that is connected again is another View's, or this one's anew: attach again.
    bridge.connect = connect as never;
    const between = new Between(transport, view);
    follow(transport);
    return connect.call(bridge, between as unknown as Transport, ...rest);
  }) as never;
  return view;
}

/** The transport that the bridge sees: the real one, with the View's messages looked at in both directions. */
class Between implements Transport {
  onmessage?: Transport["onmessage"];
  onclose?: Transport["onclose"];
  onerror?: Transport["onerror"];
  sessionId?: string;
  setProtocolVersion?: (version: string) => void;
  readonly #inner: Transport;
  readonly #view: View;

  constructor(inner: Transport, view: View) {
    this.#inner = inner;
    this.#view = view;
    view.post = (m) => void inner.send(m).catch((cause) => this.onerror?.(cause as Error));
  }

  start(): Promise<void> {
    const inner = this.#inner;
    inner.onmessage = (m, extra) => {
      if (!isMessage(m) || !this.#view.incoming(m)) this.onmessage?.(m, extra);
    };
    inner.onclose = () => {
      this.#view.close();
      this.onclose?.();
    };
    inner.onerror = (error) => this.onerror?.(error);
    return inner.start();
  }

  async send(message: Message, options?: unknown): Promise<void> {
    const m = this.#view.outgoing(message);
    return this.#inner.send(m instanceof Promise ? await m : m, options);
  }

  close(): Promise<void> {
    return this.#inner.close();
  }
}

function attachFrame(frame: HTMLIFrameElement | Window, server: Server, options: AttachOptions): Views {
  const view = new View(server, options.reads !== "host");
  const target = (): Window | null => (isElement(frame) ? frame.contentWindow : frame);
  const origin = options.origin ?? "*";
  view.post = (m) => target()?.postMessage(m, origin);
  const listener = (event: MessageEvent<unknown>): void => {
    if (event.source !== target() || (origin !== "*" && event.origin !== origin) || !isMessage(event.data)) return;
    // What is answered here must not reach the host's own listener, which would refuse it.
    if (view.incoming(event.data)) event.stopImmediatePropagation();
  };
  addEventListener("message", listener, { capture: true });
  view.undo.push(() => removeEventListener("message", listener, { capture: true }));
  view.undo.push(watchFrame(options.frame ?? frame, view));
  return view;
}
