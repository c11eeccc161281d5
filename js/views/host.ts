/**
 * The rules for the Views of one server, as ext-apps#659 proposes them. A Host stands between Views
 * and a connection to their server. It counts the watchers of each URI, bounds each View, limits
 * the rate of updates, answers each request that it takes, and forgets a closed View within the
 * same call. subscriptions.ts has the server's side of it.
 *
 * Ids to the server begin with "pagewire:", so a client of the home may share the connection. What
 * it sends leaves when its state is complete, so the home may call it again from there.
 *
 * It knows only one server, so it carries nothing to the Views of another. It sends a View only
 * messages that the View has asked for, and only after it is initialized. It never passes on
 * content by itself, sets a timer, or reads a clock.
 */
import { Legacy, Modern, type Subscriber, type Subscriptions } from "./subscriptions.ts";
import type { AttachOptions, Message, ViewStats } from "../views.d.ts";

export type Era = "legacy" | "modern";

/** Carries a Host's messages to the server, and gives it the time. */
export interface Home {
  /** The time in ms. It never goes back. */
  now(): number;
  toServer(message: Message): void;
  /** Asks for a call of `tick` at a time of `now`, or for none. Only the last call counts. */
  wake(at: number | undefined): void;
}

/** A URI that Views watch, or wait to watch. */
export interface Source {
  readonly uri: string;
  readonly watchers: Set<Port>;
  /** Subscribes that wait for the server's confirmation. */
  readonly waiting: Set<Call>;
  /** Updates may have been missed: announced once the server sends updates again. */
  missed: boolean;
  /** When the next update may be sent, and whether one is due then. */
  free: number;
  due: boolean;
  /** The read under way that later readers share. */
  read: Read | undefined;
}

interface Read {
  readonly id: string;
  readonly calls: Set<Call>;
}

/** A request of a View that waits for the server. */
interface Call {
  readonly port: Port;
  readonly id: unknown;
  readonly method: string;
  /** When the View gets an error instead of an answer. */
  by: number;
  /** Undoes what the request has begun. */
  leave(): void;
}

/** One View: a document in a frame. A new document gets a new port. */
export class Port {
  readonly send: (message: Message) => void;
  /** It accepts messages: it is initialized, or was by an earlier host. */
  ready = true;
  /** `ui/resource-teardown` has been sent. */
  leaving = false;
  /** Each document has one: messages to a former one are not sent. Undefined: it is closed. */
  life: object | undefined = {};
  /** Each is in `calls` too: requests that wait for the server's list, with what follows. */
  readonly held = new Map<Call, () => void>();
  /** Requests that have no answer, at most `maxCalls`. */
  readonly calls = new Set<Call>();
  /** URIs that it watches or waits to watch. */
  readonly sources = new Set<Source>();
  /** Updates that wait until it is ready. */
  readonly updates = new Set<Source>();

  constructor(send: (message: Message) => void) {
    this.send = send;
  }
}

/** The options of a Host. */
export interface HostOptions extends AttachOptions {
  /** The most URIs of the server to remember: the oldest one without a watcher makes room. */
  maxKnown?: number;
  maxViews?: number;
}

/** The most requests of one View that wait for an answer. */
const maxCalls = 64;
/** The most characters of an id, and of a URI or a cursor. */
const maxId = 1024;
const maxText = 8192;
const jsonrpc = "2.0";
/** The least time between two list_changed, in ms. */
const listInterval = 100;

const prefix = "pagewire:";
const ours = (id: unknown): boolean => typeof id === "string" && /^pagewire:./.test(id);

/** The client's `_meta` in each request of the modern era. The official client adds its own. */
const modernMeta = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "pagewire", version: "0" },
  "io.modelcontextprotocol/clientCapabilities": {},
};

type Members = Record<string, unknown>;
/** The members of a value of others, which may be anything. */
const members = (value: unknown): Members => (typeof value === "object" && (value as Members)) || {};
const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

const positive = (value: number | undefined, otherwise: number): number =>
  value! >= 1 ? Math.floor(value!) : otherwise;

export class Host implements Subscriber {
  readonly maxSubscriptions: number;
  readonly timeout: number;
  /** URIs that are watched or will be, by age. */
  readonly wanted = new Map<string, Source>();
  /** What has been sent. */
  readonly counts = {
    updates: 0,
    reads: 0,
    lists: 0,
    subscribes: 0,
    unsubscribes: 0,
    listens: 0,
    cancels: 0,
  };
  /** The time of the change that is being made. It never goes back. */
  now = 0;

  readonly #home: Home;
  readonly #limitCode: number;
  readonly #interval: number;
  readonly #maxKnown: number;
  readonly #maxViews: number;
  /** Of the present connection, or of the last one. */
  #era: Era | undefined;
  /** Undefined while the connection is lost. */
  #subscriptions: Subscriptions | undefined;
  readonly #ports = new Set<Port>();
  /** Calls with a deadline. All have the same time, so the first one expires first. */
  readonly #timed = new Set<Call>();
  /** Requests to the server: `lost` says that the connection's end is an answer, too. */
  readonly #asked = new Map<unknown, { answered(m: Message): void; lost: boolean }>();
  /** The number in the last request's id. */
  #last = 0;
  /** URIs that the server has listed or returned a read of, oldest first: they can be watched. */
  readonly #known = new Set<string>();
  /** The list has not changed since it was last asked for. */
  #fresh = false;
  /** The request for the list that is under way, and its deadline. Views' requests wait for it. */
  #listing: { id: string; by: number } | undefined;
  /** Whether the Views are to be told of another list, and when they may be told next. */
  #listDue = false;
  #listAt = 0;
  /** Messages that leave when the state is complete. */
  #out: (() => void)[] = [];
  /** Whether `#run` is on the stack, and whether a call within it has made a change. */
  #running = false;
  #again = false;

  constructor(era: Era | undefined, home: Home, o: HostOptions) {
    this.#home = home;
    this.maxSubscriptions = positive(o.maxSubscriptions, 10);
    this.timeout = positive(o.timeout, 30_000);
    this.#limitCode = o.limitCode || -32603;
    this.#interval = o.updatesPerSecond! > 0 ? Math.ceil(1000 / o.updatesPerSecond!) : 100;
    this.#maxKnown = positive(o.maxKnown, 10_000);
    this.#maxViews = positive(o.maxViews, 1024);
    if (era) this.connection(era);
  }

  /** Every public method: it changes the state, does all that is due, and then sends. */
  #run<T>(change: () => T): T {
    this.now = Math.max(this.now, this.#home.now());
    const result = change();
    this.#again = true;
    if (this.#running) return result;
    this.#running = true;
    while (this.#again) {
      this.#again = false;
      this.#runDue();
      for (const send of this.#out.splice(0)) {
        try {
          send();
        } catch (cause) {
          console.error("pagewire:", cause); // of the home's callback
        }
      }
    }
    this.#running = false;
    this.#home.wake(this.#deadline());
    return result;
  }

  /** Does all that is due. */
  #runDue(): void {
    for (const call of this.#timed) {
      if (call.by > this.now) break;
      const data = { reason: "timeout", timeoutMs: this.timeout };
      this.#fail(call, -32603, "The server took too long", data);
    }
    const listing = this.#listing;
    if (listing && listing.by <= this.now) {
      this.drop(listing.id); // its late answer would be taken for that of the next list
      this.#listed();
    }
    for (const source of this.wanted.values()) {
      if (source.due && source.free <= this.now) this.#update(source);
    }
    if (this.#listDue && this.#listAt <= this.now) {
      this.#listDue = false;
      this.#listAt = this.now + listInterval;
      for (const port of this.#ports)
        if (port.ready && !port.leaving)
          this.#send(port, { jsonrpc, method: "notifications/resources/list_changed", params: {} });
    }
    this.#subscriptions?.reconcile();
  }

  #deadline(): number | undefined {
    const times = [this.#subscriptions?.deadline() ?? Infinity];
    for (const { by } of this.#timed) {
      times.push(by);
      break;
    }
    if (this.#listing) times.push(this.#listing.by);
    if (this.#listDue) times.push(this.#listAt);
    for (const { due, free } of this.wanted.values()) if (due) times.push(free);
    const soonest = Math.min(...times);
    return soonest < Infinity ? soonest : undefined;
  }

  /** Does the work that has fallen due. An early or a late call does no harm. */
  tick(): void {
    this.#run(() => {});
  }

  /** Why `open` has failed. */
  get full(): string {
    const limit = `the limit of ${this.#maxViews} Views of a server is reached`;
    return `${limit}: close those whose frames are gone`;
  }

  /** Begins a View. Undefined means that there are too many. */
  open(send: (message: Message) => void): Port | undefined {
    if (this.#ports.size >= this.#maxViews) return undefined;
    const port = new Port(send);
    this.#ports.add(port);
    return port;
  }

  /** Ends a View whose frame or document is gone: nothing of it is left when close returns. */
  close(port: Port): void {
    this.#run(() => {
      this.#renew(port);
      port.life = undefined;
      this.#ports.delete(port);
    });
  }

  /**
   * The home has sent `ui/resource-teardown`, or is about to. The View's subscriptions end at once,
   * since its answer may never come, and it gets no new ones. Its reads go on, so that it can save
   * its state.
   */
  teardown(port: Port): void {
    this.#run(() => {
      port.leaving = true;
      this.#release(port);
    });
  }

  /** Ends the subscriptions of a View, and answers those that wait. */
  #release(port: Port): void {
    for (const call of port.calls) {
      if (call.method === "resources/subscribe") this.#refuse(call);
      else if (call.method === "resources/unsubscribe") this.#answer(call, { result: {} });
    }
    for (const source of port.sources) this.#unwatch(port, source);
    port.updates.clear();
  }

  #refuse(call: Call): void {
    const why = "The View is being torn down: it gets no new subscriptions";
    this.#fail(call, -32603, why, { reason: "teardown" });
  }

  /** Ends all that a document has asked for: it is gone, so nothing more is sent to it. */
  #renew(port: Port): void {
    for (const call of port.calls) this.#end(call);
    this.#release(port);
    port.life = {};
  }

  /**
   * Looks at a message of a View. It takes, and answers, requests for resources; the home handles
   * all others, but they must come here, too: the handshake, cancellations, and
   * `ui/notifications/request-teardown`.
   */
  receive(port: Port, message: Message): boolean {
    return this.#run(() => port.life !== undefined && this.#receive(port, message));
  }

  #receive(port: Port, { id, method, params }: Message): boolean {
    switch (method) {
      case "ui/initialize":
        // The frame has another document, or has loaded the same one again: the former document's
        // watches end.
        port.ready = port.leaving = false;
        this.#renew(port);
        return false;
      case "ui/notifications/initialized":
        port.ready = true;
        for (const source of port.updates) this.#tell(port, source);
        port.updates.clear();
        return false;
      case "ui/notifications/request-teardown":
        this.#release(port);
        return false;
      case "notifications/cancelled":
        for (const call of port.calls) if (call.id === members(params).requestId) this.#end(call);
        return false;
      case "resources/read":
      case "resources/list":
      case "resources/templates/list":
      case "resources/subscribe":
      case "resources/unsubscribe":
        if (id === undefined) return false;
        this.#request(port, id, method, members(params));
        return true;
    }
    return false;
  }

  #request(port: Port, id: unknown, method: string, { uri, cursor }: Members): void {
    const call: Call = { port, id, method, by: 0, leave() {} };
    const fail = (code: number, why: string, data?: object): void => this.#fail(call, code, why, data);
    const invalid = (why: string): void => fail(-32602, `Invalid params: ${why}`);
    if (!(typeof id === "number" || (typeof id === "string" && id.length <= maxId))) {
      const valid = `a number, or a string of at most ${maxId} characters`;
      return fail(-32600, `Invalid request: id must be ${valid}`);
    }
    const lists = method.endsWith("list");
    const name = lists ? "cursor" : "uri";
    const text = lists ? (cursor ?? "") : uri;
    if (typeof text !== "string") return invalid(`${name} must be a string`);
    if (text.length > maxText) return invalid(`${name} is longer than ${maxText} characters`);
    if (!lists && !/^[a-z][a-z\d+.-]*:[\s\S]/i.test(text))
      return fail(-32602, "Invalid URI: not an absolute URI", { reason: "invalid_uri" });
    if (port.calls.size >= maxCalls) {
      const data = { reason: "call_limit", maxCalls };
      return fail(-32603, "Too many requests at once: wait for their answers", data);
    }
    port.calls.add(call);
    if (lists) return this.#relay(call, method, cursor === undefined ? {} : { cursor });
    if (method === "resources/read") return this.#read(call, text);
    const subscribe = method === "resources/subscribe";
    if (subscribe && port.leaving) return this.#refuse(call);
    const act = subscribe ? () => this.#subscribe(call, text) : () => this.#unsubscribe(call, text);
    const listed = this.#fresh || !this.#subscriptions; // the list can say no more
    const unlisted = subscribe && !this.#known.has(text) && (this.#listing || !listed);
    if (!unlisted && !port.held.size) return act();
    // It waits for the server's list. Requests stay in order.
    port.held.set(call, act);
    call.leave = () => port.held.delete(call);
    if (unlisted && !this.#listing) this.#list();
  }

  #subscribe(call: Call, uri: string): void {
    const { port } = call;
    if (!this.#known.has(uri)) return this.#notFound(call, uri);
    const known = this.wanted.get(uri);
    if (known?.watchers.has(port)) return this.#answer(call, { result: {} });
    if (!(known && port.sources.has(known)) && port.sources.size >= this.maxSubscriptions) {
      const data = { reason: "subscription_limit", maxSubscriptions: this.maxSubscriptions, uri };
      return this.#fail(call, this.#limitCode, "Subscription limit reached", data);
    }
    const source: Source = known ?? {
      uri,
      watchers: new Set(),
      waiting: new Set(),
      missed: false,
      free: 0,
      due: false,
      read: undefined,
    };
    this.wanted.set(uri, source);
    port.sources.add(source);
    source.waiting.add(call);
    this.#await(call, () => {
      source.waiting.delete(call);
      this.#tidy(port, source);
    });
  }

  #unsubscribe(call: Call, uri: string): void {
    const { port } = call;
    const source = this.wanted.get(uri);
    if (source) {
      // The View's last request counts: a subscribe that waits gets its answer, and is none.
      for (const earlier of source.waiting) {
        if (earlier.port === port) this.#answer(earlier, { result: {} });
      }
      this.#unwatch(port, source);
    }
    this.#answer(call, { result: {} });
  }

  #unwatch(port: Port, source: Source): void {
    source.watchers.delete(port);
    port.updates.delete(source);
    this.#tidy(port, source);
  }

  /** Forgets that a View wants a source if it does not, and the source if no View does. */
  #tidy(port: Port, source: Source): void {
    const { watchers, waiting } = source;
    if (watchers.has(port)) return;
    for (const call of waiting) if (call.port === port) return;
    port.sources.delete(source);
    if (!watchers.size && !waiting.size) this.wanted.delete(source.uri);
  }

  /** Answers the waiting subscribes to a source: with an error if the server has refused. */
  consent(uri: string, refusal?: string): void {
    const source = this.wanted.get(uri);
    if (!source) return;
    for (const call of source.waiting) {
      if (refusal) this.#fail(call, -32603, refusal, { reason: "subscription_refused" });
      else {
        source.watchers.add(call.port);
        this.#answer(call, { result: {} });
      }
    }
    if (refusal || !source.missed) return;
    source.missed = false;
    this.#touch(source);
  }

  miss(uri: string): void {
    const source = this.wanted.get(uri);
    if (source) source.missed = true;
  }

  touch(uri: string): void {
    const source = this.wanted.get(uri);
    if (source) this.#touch(source);
  }

  /** A source has changed: its watchers are told now, or when its interval is over. */
  #touch(source: Source): void {
    source.read = undefined; // it may have the old contents
    if (source.free > this.now) source.due = source.watchers.size > 0;
    else if (source.watchers.size) this.#update(source);
  }

  #update(source: Source): void {
    source.due = false;
    for (const port of source.watchers) {
      if (port.ready) this.#tell(port, source);
      else port.updates.add(source);
    }
  }

  #tell(port: Port, source: Source): void {
    const { uri } = source;
    source.free = this.now + this.#interval; // also for an update that a View gets late
    this.counts.updates++;
    this.#send(port, { jsonrpc, method: "notifications/resources/updated", params: { uri } });
  }

  #read(call: Call, uri: string): void {
    if (this.#lost(call, "read_failed")) return;
    // What nobody watches may have changed since an earlier read began, without an update.
    const watched = this.wanted.get(uri)?.watchers.size ? this.wanted.get(uri) : undefined;
    const read: Read = watched?.read ?? {
      calls: new Set(),
      id: this.ask("resources/read", { uri }, (m) => {
        if (watched?.read === read) watched.read = undefined;
        this.#answerRead(read, uri, m);
      }),
    };
    if (!read.calls.size) this.counts.reads++;
    if (watched) watched.read = read;
    read.calls.add(call);
    this.#await(call, () => {
      read.calls.delete(call);
      if (read.calls.size) return;
      if (watched?.read === read) watched.read = undefined;
      this.drop(read.id);
    });
  }

  #answerRead({ calls }: Read, uri: string, { result, error }: Message): void {
    const contents = list(members(result).contents);
    const { code, message, data } = members(error);
    const missing = code === -32002 || (code === -32602 && members(data).uri === uri);
    if (contents.length) {
      this.#learn(uri);
      this.#learnAll(contents);
    }
    for (const call of calls) {
      if (contents.length) this.#answer(call, { result: { contents } });
      else if (result) this.#fail(call, -32603, "Read failed", { reason: "invalid_contents" });
      else if (missing) this.#notFound(call, uri);
      else this.#fail(call, -32603, String(message || "Read failed"), { reason: "read_failed" });
    }
  }

  /** Passes on a View's request for a list. */
  #relay(call: Call, method: string, params: Members): void {
    if (this.#lost(call, "server_lost")) return;
    this.counts.lists++;
    const id = this.ask(method, params, ({ result, error }) => {
      this.#learnAll(list(members(result).resources));
      const none = { code: -32603, message: "The server's answer has no result" };
      this.#answer(call, result ? { result } : { error: error ?? none });
    });
    this.#await(call, () => this.drop(id));
  }

  #lost(call: Call, reason: string): boolean {
    if (this.#subscriptions) return false;
    this.#fail(call, -32603, "The server is not connected: try again when it is", { reason });
    return true;
  }

  /** A View's request begins to wait for the server. */
  #await(call: Call, leave: () => void): void {
    call.leave = leave;
    call.by = this.now + this.timeout;
    this.#timed.add(call);
  }

  #end(call: Call): void {
    call.port.calls.delete(call);
    this.#timed.delete(call);
    call.leave();
  }

  #answer(call: Call, body: object): void {
    this.#end(call);
    this.#send(call.port, { jsonrpc, id: call.id, ...body });
  }

  #fail(call: Call, code: number, message: string, data?: object): void {
    this.#answer(call, { error: { code, message, ...(data && { data }) } });
  }

  #notFound(call: Call, uri: string): void {
    this.#fail(call, -32002, "Resource not found", { uri });
  }

  #send(port: Port, message: Message): void {
    const { life } = port;
    this.#out.push(() => {
      if (port.life === life) port.send(message);
    });
  }

  /** Sends the server a request, and returns its id. */
  ask(method: string, params: object, answered: (m: Message) => void, lost = true): string {
    const id = prefix + ++this.#last;
    this.#asked.set(id, { answered, lost });
    const more = this.#era === "modern" ? { _meta: modernMeta } : {};
    this.#toServer({ jsonrpc, id, method, params: { ...more, ...params } });
    return id;
  }

  /** Cancels a request to the server that has no answer. */
  drop(id: string): void {
    if (!this.#asked.delete(id)) return;
    this.counts.cancels++;
    this.#toServer({ jsonrpc, method: "notifications/cancelled", params: { requestId: id } });
  }

  /** The server has ended a request that has no other answer. */
  forget(id: unknown): void {
    this.#asked.delete(id);
  }

  #toServer(message: Message): void {
    const connected = this.#subscriptions;
    this.#out.push(() => {
      if (connected === this.#subscriptions) this.#home.toServer(message);
    });
  }

  /**
   * Looks at a message of the server. It takes answers to the Host's requests and the messages of
   * its streams; all others may be for another client on the same connection.
   */
  fromServer(message: Message): boolean {
    return this.#run(() => this.#fromServer(message));
  }

  #fromServer(message: Message): boolean {
    const { id, method, params } = members(message) as Partial<Message>;
    const { _meta, uri, requestId, notifications } = members(params);
    const stream = members(_meta)["io.modelcontextprotocol/subscriptionId"];
    switch (method) {
      case undefined: {
        const asked = this.#asked.get(id);
        this.#asked.delete(id);
        asked?.answered(message);
        return ours(id);
      }
      case "notifications/resources/updated":
        if (typeof uri === "string") this.#updated(uri);
        break;
      case "notifications/resources/list_changed":
        this.#fresh = false;
        this.#listDue = true;
        break;
      case "notifications/subscriptions/acknowledged": {
        const { resourceSubscriptions } = members(notifications);
        this.#subscriptions?.acknowledged(stream, list(resourceSubscriptions));
        break;
      }
      case "notifications/cancelled":
        this.#subscriptions?.ended(requestId);
        return ours(requestId);
    }
    return ours(stream);
  }

  /** The server may name a URI below a watched one, also if Views watch both: one message then. */
  #updated(uri: string): void {
    for (const source of this.wanted.values()) {
      const { uri: of, waiting } = source;
      const next = of.endsWith("/") ? "" : uri.charAt(of.length);
      if (!uri.startsWith(of) || !"/?#".includes(next)) continue;
      if (waiting.size) source.missed = true; // over HTTP it may come before the confirmation
      this.#touch(source);
    }
  }

  /**
   * The connection to the server is lost, with null, or there is a new one to a server of this era.
   * Requests under way fail. Subscriptions stay: the Host makes them again, and then announces
   * them, as resources may have changed meanwhile.
   */
  connection(era: Era | null): void {
    this.#run(() => {
      if (this.#subscriptions) this.#lose();
      if (!era) return;
      this.#era = era;
      this.#subscriptions = era === "modern" ? new Modern(this) : new Legacy(this);
    });
  }

  #lose(): void {
    this.#subscriptions = undefined;
    for (const source of this.wanted.values()) source.missed = true;
    const gone = { code: -32603, message: "The connection to the server is lost" };
    const asked = [...this.#asked.values()];
    this.#asked.clear();
    for (const { answered, lost } of asked) if (lost) answered({ jsonrpc, error: gone });
    this.#fresh = false;
  }

  /** Adds a URI of the server that the home has seen in a list or a read elsewhere. */
  learn(uri: string): void {
    this.#run(() => this.#learn(uri));
  }

  #learn(uri: string): void {
    const offered = /^[a-z][a-z\d+.-]*:[^{}]+$/i.test(uri) && uri.length <= maxText;
    if (!offered || this.#known.has(uri)) return;
    if (this.#known.size < this.#maxKnown || this.#forgetOne()) this.#known.add(uri);
  }

  /** Makes room for one more URI, unless all of them are watched. */
  #forgetOne(): boolean {
    for (const uri of this.#known) if (!this.wanted.has(uri)) return this.#known.delete(uri);
    return false;
  }

  /** Learns the URIs of a list's resources, or of a read's contents. */
  #learnAll(items: unknown[]): void {
    for (const item of items) {
      const { uri } = members(item);
      if (typeof uri === "string") this.#learn(uri);
    }
  }

  /** Asks for the server's list, page by page. */
  #list(cursor?: string, pages = 1): void {
    this.#fresh ||= pages === 1;
    this.counts.lists++;
    const id = this.ask("resources/list", cursor === undefined ? {} : { cursor }, ({ result }) => {
      const { resources, nextCursor: next } = members(result);
      this.#learnAll(list(resources));
      // A server may have one resource on each page, or endless pages.
      const more = typeof next === "string" && next && next !== cursor && pages < this.#maxKnown;
      if (more) this.#list(next, pages + 1);
      else this.#listed();
    });
    this.#listing = { id, by: this.now + this.timeout };
  }

  /** Continues what waited for the list. A failed list is not asked for by each subscribe again. */
  #listed(): void {
    this.#listing = undefined;
    for (const { held } of this.#ports) {
      for (const [call, act] of held) {
        held.delete(call);
        call.leave = () => {};
        act();
      }
    }
  }

  stats(): ViewStats {
    const [upstream, streams] = this.#subscriptions?.held() ?? [0, 0];
    let subscriptions = 0;
    let watched = 0;
    for (const { watchers } of this.wanted.values()) {
      subscriptions += watchers.size;
      if (watchers.size) watched++;
    }
    const [views, pending, known] = [this.#ports.size, this.#asked.size, this.#known.size];
    return { views, subscriptions, watched, upstream, streams, pending, known, ...this.counts };
  }
}
