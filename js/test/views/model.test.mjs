/**
 * A Host between Views and a correct server, in random histories. Whatever Views do and whenever
 * their frames go, no change is lost, no limit is passed, each request has one answer, and nothing
 * is left behind.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Host } from "../../../dist/test/views.host.mjs";

const uris = Array.from({ length: 6 }, (_, i) => `data://${i}`);
const unlisted = "data://unlisted";
const max = 4;
const interval = 100;
const jsonrpc = "2.0";
const SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId";

/** Numbers below n, the same for each seed (mulberry32). */
function random(seed) {
  return (n) => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), seed | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) % n;
  };
}

/** A correct View: it reads each URI that it begins to watch, and each that is updated. */
class View {
  watching = new Set();
  /**
   * Requests without an answer: id -> { method, uri, refusal: the error it must have, givenBack }.
   */
  asked = new Map();
  seen = new Map();
  /** URIs to read. */
  stale = new Set();
  /** URI -> the time of its last update, since it was subscribed to. */
  told = new Map();
  ready = true;
  leaving = false;
  #last = 0;

  constructor(world) {
    this.world = world;
    this.port = world.host.open((message) => world.watch(() => this.hear(message)));
  }

  send(method, params) {
    this.world.host.receive(this.port, { jsonrpc, method, params });
  }

  ask(method, uri, refusal) {
    const id = ++this.#last;
    this.asked.set(id, { method, uri, refusal });
    assert.ok(this.world.host.receive(this.port, { jsonrpc, id, method, params: { uri } }), "it is not taken");
    return !this.asked.has(id);
  }

  pending(uri) {
    const ours = ({ method, uri: of }) => method === "resources/subscribe" && (!uri || of === uri);
    return [...this.asked.values()].filter(ours).length;
  }

  /** Whether it has asked for a URI that makes the Host ask for the list: what follows waits. */
  get waits() {
    return this.pending(unlisted) > 0;
  }

  subscribe(uri) {
    if (this.pending(uri) || this.waits) return;
    const full = !this.watching.has(uri) && this.watching.size + this.pending() >= max;
    const refusal = this.leaving ? "teardown" : uri === unlisted ? "unknown" : full ? "subscription_limit" : undefined;
    const answered = this.ask("resources/subscribe", uri, refusal);
    assert.ok(answered || !refusal || this.waits, "it must be refused at once");
  }

  unsubscribe(uri) {
    if (this.waits) return;
    this.watching.delete(uri);
    this.told.delete(uri);
    for (const request of this.asked.values()) if (request.uri === uri) request.givenBack = true;
    this.ask("resources/unsubscribe", uri);
    assert.equal(this.pending(uri), 0, "a subscribe that is given back has its answer");
  }

  cancel() {
    const [[id, request] = []] = this.asked;
    if (!request) return;
    if (request.method === "resources/read") this.stale.add(request.uri);
    this.asked.delete(id);
    this.send("notifications/cancelled", { requestId: id });
  }

  /** Its subscriptions are over, and those that wait are refused. */
  released() {
    for (const all of [this.watching, this.told]) all.clear();
    for (const request of this.asked.values())
      if (request.method === "resources/subscribe") request.refusal = "teardown";
  }

  /** The frame has another document. */
  reload() {
    for (const all of [this.watching, this.asked, this.stale, this.told]) all.clear();
    this.ready = this.leaving = false;
    this.world.host.receive(this.port, { jsonrpc, id: 0, method: "ui/initialize", params: {} });
  }

  initialized() {
    this.ready = true;
    this.send("ui/notifications/initialized");
  }

  teardown() {
    this.released();
    this.leaving = true;
    this.world.host.teardown(this.port);
    assert.equal(this.pending(), 0, "a subscribe waits at a View that leaves");
  }

  asksToGo() {
    this.released();
    this.send("ui/notifications/request-teardown", {});
    assert.equal(this.pending(), 0, "a subscribe waits at a View that asks to go");
  }

  remove() {
    this.gone = true;
    this.world.views.delete(this);
    this.world.host.close(this.port);
  }

  readStale() {
    for (const uri of this.stale) this.ask("resources/read", uri);
    this.stale.clear();
  }

  hear({ id, method, params, result, error }) {
    const { world } = this;
    assert.ok(!this.gone, "a View that is gone is sent a message");
    if (method) {
      assert.equal(method, "notifications/resources/updated");
      assert.ok(this.ready, "an update before the View is initialized");
      const { uri } = params;
      if (!this.watching.has(uri)) return assert.fail(`an update of ${uri}, which it does not watch`);
      assert.ok(!(world.now - this.told.get(uri) < interval), "two updates within the interval");
      this.told.set(uri, world.now);
      this.stale.add(uri);
      return;
    }
    assert.ok(this.asked.has(id), `an answer to ${id}, which has one or was taken back`);
    const { method: asked, uri, refusal, givenBack } = this.asked.get(id);
    this.asked.delete(id);
    if (asked === "resources/read") {
      if (error)
        this.stale.add(uri); // the connection was lost
      else this.seen.set(uri, Math.max(this.seen.get(uri) ?? 0, Number(result.contents[0].text)));
    } else if (error) {
      assert.equal(error.code === -32002 ? "unknown" : error.data.reason, refusal, error.message);
    } else if (asked === "resources/subscribe" && !givenBack) {
      this.watching.add(uri);
      this.stale.add(uri);
    }
  }
}

/**
 * The server, and the messages on their way. Each channel keeps its order, and channels have no
 * order among each other, as over HTTP. No message is on its way for longer than a replaced listen
 * lingers.
 */
class World {
  now = 0;
  due;
  version = new Map(uris.map((uri) => [uri, 0]));
  subscribed = new Set();
  streams = new Map();
  /** Answers to all requests except listens: in any order. */
  answers = [];
  channels = new Map();
  views = new Set();
  connected = true;

  constructor(seed, era) {
    this.random = random(seed);
    this.era = era;
    const home = {
      now: () => this.now,
      wake: (at) => (this.due = at),
      toServer: (m) => this.watch(() => this.serve(m)),
    };
    this.host = new Host(era, home, { maxSubscriptions: max });
    for (const uri of uris) this.host.learn(uri);
  }

  /** The Host survives what its home throws, so a failed check is kept for `check`. */
  watch(call) {
    try {
      call();
    } catch (cause) {
      this.failed ??= cause;
    }
  }

  serve({ id, method, params }) {
    assert.ok(this.connected, "a message to a server that is not connected");
    const answer = (result) => this.answers.push({ jsonrpc, id, result });
    const { uri } = params;
    switch (method) {
      case "resources/list":
        return answer({ resources: [] });
      case "resources/read":
        return answer({ contents: [{ uri, text: String(this.version.get(uri)) }] });
      case "resources/subscribe":
        assert.ok(!this.subscribed.has(uri), `subscribed twice to ${uri}`);
        this.subscribed.add(uri);
        return answer({});
      case "resources/unsubscribe":
        assert.ok(this.subscribed.delete(uri), `unsubscribed from ${uri}, which was not subscribed to`);
        return answer({});
      case "subscriptions/listen": {
        const { resourceSubscriptions } = params.notifications;
        this.streams.set(id, resourceSubscriptions);
        const acknowledged = { _meta: { [SUBSCRIPTION]: id }, notifications: { resourceSubscriptions } };
        return this.tell(id, "notifications/subscriptions/acknowledged", acknowledged);
      }
      case "notifications/cancelled":
        // The listen's HTTP connection is closed: messages on their way on it are lost.
        this.streams.delete(params.requestId);
        this.channels.delete(params.requestId);
    }
  }

  tell(channel, method, params) {
    if (!this.channels.has(channel)) this.channels.set(channel, []);
    this.channels.get(channel).push({ sent: this.now, message: { jsonrpc, method, params } });
  }

  /** Gives a URI a new text, and announces it to its watchers. */
  change(uri) {
    this.version.set(uri, this.version.get(uri) + 1);
    const method = "notifications/resources/updated";
    if (this.subscribed.has(uri)) this.tell("", method, { uri });
    for (const [id, watched] of this.streams)
      if (watched.includes(uri)) this.tell(id, method, { _meta: { [SUBSCRIPTION]: id }, uri });
  }

  /** Lets a random message on its way arrive, if there is one. */
  deliver() {
    const channels = [...this.channels.keys()];
    const n = channels.length + this.answers.length;
    if (!n) return false;
    const i = this.random(n);
    if (i < this.answers.length) this.host.fromServer(this.answers.splice(i, 1)[0]);
    else this.arrive(channels[i - this.answers.length]);
    return true;
  }

  arrive(channel) {
    const [{ message }, ...rest] = this.channels.get(channel);
    if (rest.length) this.channels.set(channel, rest);
    else this.channels.delete(channel);
    this.host.fromServer(message);
  }

  lose() {
    this.connected = false;
    this.subscribed.clear();
    this.streams.clear();
    this.channels.clear();
    this.answers = [];
    this.host.connection(null);
  }

  back() {
    this.connected = true;
    this.host.connection(this.era);
  }

  pass(ms) {
    for (const channel of [...this.channels.keys()])
      while (this.channels.get(channel)?.[0].sent < this.now - 90) this.arrive(channel);
    for (const end = this.now + ms; ; this.host.tick()) {
      if (!(this.due <= end)) {
        this.now = end;
        return;
      }
      this.now = Math.max(this.now, this.due);
    }
  }

  /** One random step of a View, the server, the connection or time. */
  step() {
    const uri = uris[this.random(uris.length)];
    const view = [...this.views][this.random(this.views.size + 1)];
    switch (this.random(11)) {
      case 0:
        if (this.views.size < 8) this.views.add(new View(this));
        break;
      case 1:
      case 2:
        view?.subscribe(this.random(20) ? uri : unlisted);
        break;
      case 3:
        view?.unsubscribe(uri);
        break;
      case 4:
        view?.[["remove", "remove", "reload", "teardown", "asksToGo", "cancel"][this.random(6)]]();
        break;
      case 5:
      case 6:
        this.change(uri);
        break;
      case 7:
        for (const each of this.views) each.readStale();
        break;
      case 8:
        this.pass(this.random(100));
        break;
      case 9:
        if (view && !view.ready) view.initialized();
        else if (!this.connected) this.back();
        else if (!this.random(20)) this.lose();
        break;
      default:
        this.deliver();
    }
    this.check();
  }

  /** What holds at any moment. */
  check() {
    if (this.failed) throw this.failed;
    const { views, subscriptions, watched } = this.host.stats();
    const all = [...this.views].flatMap(({ watching }) => [...watching]);
    assert.deepEqual([views, subscriptions, watched], [this.views.size, all.length, new Set(all).size]);
  }

  /**
   * Lets all messages arrive. Then each View has read the newest version of each URI that it
   * watches, and the server has exactly the subscriptions that are needed.
   */
  settle() {
    if (!this.connected) this.back();
    for (const view of this.views) if (!view.ready) view.initialized();
    do {
      while (this.deliver());
      this.pass(500);
      for (const view of this.views) view.readStale();
    } while (this.answers.length + this.channels.size);
    const needed = new Set();
    for (const { watching, asked, seen } of this.views) {
      assert.deepEqual([...asked], [], "a request has no answer");
      for (const uri of watching) {
        needed.add(uri);
        assert.equal(seen.get(uri), this.version.get(uri), `the version of ${uri}`);
      }
    }
    const held = new Set([...this.subscribed, ...[...this.streams.values()].flat()]);
    assert.deepEqual([...held].sort(), [...needed].sort(), "what the server holds");
    assert.ok(this.streams.size <= 1, `${this.streams.size} listens are open`);
    const { pending, upstream } = this.host.stats();
    assert.deepEqual([pending, upstream], [this.streams.size, needed.size]);
    this.check();
  }

  /** All Views go. */
  end() {
    for (const view of this.views) view.remove();
    this.settle();
    const { upstream, streams, pending, views, subscriptions } = this.host.stats();
    assert.deepEqual([upstream, streams, pending, views, subscriptions], [0, 0, 0, 0, 0]);
    assert.equal(this.due, undefined, "a timer is left");
  }
}

for (const era of ["legacy", "modern"]) {
  test(`${era}: in 40,000 random steps nothing is lost, and nothing is left`, () => {
    for (let seed = 0; seed < 100; seed++) {
      const world = new World(seed, era);
      try {
        for (let i = 0; i < 400; i++) world.step();
        world.settle();
        world.end();
      } catch (cause) {
        throw new Error(`seed ${seed}: ${cause.message}`, { cause });
      }
    }
  });

  test(`${era}: fifty Views that watch one URI share one subscription, which ends with the last of them`, () => {
    const world = new World(50, era);
    for (let i = 0; i < 50; i++) world.views.add(new View(world));
    for (const view of world.views) view.subscribe(uris[0]);
    world.settle();
    const counts = () => world.host.stats();
    assert.deepEqual([counts().subscriptions, counts().upstream, counts().subscribes + counts().listens], [50, 1, 1]);
    const { reads } = counts();
    world.change(uris[0]);
    world.settle();
    assert.deepEqual([counts().updates, counts().reads], [50, reads + 1]);
    while (world.views.size > 1) {
      [...world.views][world.random(world.views.size)].remove();
      assert.deepEqual([counts().upstream, counts().unsubscribes + counts().cancels], [1, 0]);
    }
    world.end();
    assert.equal(counts().unsubscribes + counts().cancels, 1);
  });
}
