/** A Host's subscriptions at its server, in both protocol eras. An object serves one connection. */
import type { Message } from "../views.d.ts";

/** Whose subscriptions they are: a Host. */
export interface Subscriber {
  /** The URIs that Views watch, or wait to watch. */
  readonly wanted: { readonly size: number; has(uri: string): boolean; keys(): Iterable<string> };
  readonly counts: { subscribes: number; unsubscribes: number; listens: number };
  readonly now: number;
  readonly timeout: number;
  /**
   * Sends the server a request, and returns its id. Unless `lost`, the connection's end is no
   * answer.
   */
  ask(method: string, params: object, answered: (m: Message) => void, lost: boolean): string;
  /** Cancels a request that has no answer. */
  drop(id: string): void;
  /** The server has ended a request that has no other answer. */
  forget(id: unknown): void;
  /** The server sends updates of a URI from now on, or refuses to. */
  consent(uri: string, refusal?: string): void;
  /**
   * A URI may have changed: its watchers are told, or are told once the server sends updates again.
   */
  touch(uri: string): void;
  miss(uri: string): void;
}

export interface Subscriptions {
  /** Makes the subscriptions match the Host's `wanted`, as far as that is possible now. */
  reconcile(): void;
  /** When reconcile is next needed; Infinity if nothing is scheduled. */
  deadline(): number;
  /** The server has acknowledged a listen, for these URIs. */
  acknowledged(stream: unknown, uris: unknown[]): void;
  /** The server has ended a stream. */
  ended(id: unknown): void;
  /** How many URIs and streams the server holds, as if all open requests were answered. */
  held(): [subscriptions: number, streams: number];
}

/** The time of the next attempt after failures: 1 s later, then 2 s, 4 s, and so on up to 30 s. */
class Retry {
  /** In a row. */
  #failures = 0;
  /** The earliest time of the next attempt. */
  at = 0;

  failed(now: number): void {
    this.at = now + Math.min(1000 * 2 ** this.#failures++, 30_000);
  }
}

/** The server's reason for a refusal. */
function reason({ error }: Message): string {
  const { message } = (error ?? {}) as { message?: unknown };
  return (typeof message === "string" && message) || "The server refuses the subscription";
}

/** A URI at the server. */
interface Held {
  state: "idle" | "subscribing" | "subscribed" | "unsubscribing";
  retry: Retry;
}

/** Up to 2025-11-25: a `resources/subscribe` for each URI. */
export class Legacy implements Subscriptions {
  readonly #host: Subscriber;
  /** By URI: all that are wanted, and those that the server still holds. */
  readonly #at = new Map<string, Held>();

  constructor(host: Subscriber) {
    this.#host = host;
  }

  reconcile(): void {
    const { wanted, counts, now } = this.#host;
    for (const uri of wanted.keys()) {
      if (!this.#at.has(uri)) this.#at.set(uri, { state: "idle", retry: new Retry() });
    }
    for (const [uri, at] of this.#at) {
      const want = wanted.has(uri);
      if (at.state === "subscribed" && want) this.#host.consent(uri);
      else if (at.state === "subscribed") {
        at.state = "unsubscribing";
        counts.unsubscribes++;
        const answered = (): void => {
          at.state = "idle"; // also if the server refuses: no further step is possible
        };
        this.#host.ask("resources/unsubscribe", { uri }, answered, false);
      } else if (at.state === "idle" && !want) this.#at.delete(uri);
      else if (at.state === "idle" && at.retry.at <= now) {
        at.state = "subscribing";
        counts.subscribes++;
        this.#host.ask("resources/subscribe", { uri }, (m) => this.#answered(uri, m), false);
      }
    }
  }

  #answered(uri: string, m: Message): void {
    const at = this.#at.get(uri)!;
    if (m.result) {
      at.state = "subscribed";
      at.retry = new Retry();
      return; // reconcile answers the Views
    }
    at.state = "idle";
    at.retry.failed(this.#host.now); // for Views that watched it before the connection was lost
    this.#host.consent(uri, reason(m));
  }

  deadline(): number {
    let soonest = Infinity;
    for (const [uri, { state, retry }] of this.#at)
      if (state === "idle" && this.#host.wanted.has(uri)) soonest = Math.min(soonest, retry.at);
    return soonest;
  }

  acknowledged(): void {}

  ended(): void {}

  held(): [number, number] {
    let n = 0;
    for (const { state } of this.#at.values()) if (state !== "idle") n++;
    return [n, 0];
  }
}

/** One listen. */
interface Stream {
  id: string;
  readonly uris: Set<string>;
  /** When an old one is cancelled, and one that the server does not acknowledge. */
  end: number;
  /** When it was acknowledged. */
  born: number;
}

/**
 * How long a replaced listen stays open, in ms. Over HTTP each listen is a connection of its own:
 * an update that was sent on the old one may arrive after the new one's acknowledgement. Announcing
 * everything instead would make every View read all its resources whenever another View comes or
 * goes.
 *
 * Why does a listen that was replaced stay open for 200 ms? A modern server's listen cannot change
 * its URIs. If the old one is cancelled when the new one is acknowledged, messages on the old
 * connection get lost, since two connections of HTTP have no order. Announcing everything instead
 * makes every View read everything whenever another View comes.
 */
const linger = 200;
/** The most listens that linger: Views that come and go fast must not reach the server's bound. */
const maxOld = 4;

/**
 * From 2026-07-28: one `subscriptions/listen` has all URIs. Its set cannot change. To change the
 * set without losing an update, a new listen is opened, and the old one is cancelled a little after
 * the server has acknowledged the new one.
 */
export class Modern implements Subscriptions {
  readonly #host: Subscriber;
  /** The last one that the server has acknowledged, and has not ended. */
  #current: Stream | undefined;
  /** A newer one, which is not acknowledged. There is at most one. */
  #opening: Stream | undefined;
  /** Those that `current` has replaced, at most `maxOld`, oldest first. */
  #old: Stream[] = [];
  #retry = new Retry();

  constructor(host: Subscriber) {
    this.#host = host;
  }

  get #open(): Stream[] {
    return [...this.#old, this.#current, this.#opening].filter((stream) => stream !== undefined);
  }

  /** Whether the wanted URIs differ from those of the current listen. */
  get #behind(): boolean {
    const { wanted } = this.#host;
    const have = this.#current?.uris;
    if (wanted.size !== (have?.size ?? 0)) return true;
    for (const uri of wanted.keys()) if (!have!.has(uri)) return true;
    return false;
  }

  reconcile(): void {
    const { wanted, counts, now } = this.#host;
    for (const stream of this.#old) if (stream.end <= now) this.#host.drop(stream.id);
    this.#old = this.#old.filter(({ end }) => end > now);
    if (this.#opening && this.#opening.end <= now) {
      this.#host.drop(this.#opening.id); // it would be in the way of all later ones
      this.#refused();
    }
    if (!wanted.size) {
      // No View is left that could miss an update.
      for (const { id } of this.#open) this.#host.drop(id);
      this.#current = this.#opening = undefined;
      this.#old = [];
      return;
    }
    for (const uri of wanted.keys()) if (this.#current?.uris.has(uri)) this.#host.consent(uri);
    if (this.#opening || !this.#behind || this.#retry.at > now) return;
    const resourceSubscriptions = [...wanted.keys()];
    const notifications = { resourcesListChanged: true, resourceSubscriptions };
    const uris = new Set(resourceSubscriptions);
    const stream: Stream = { id: "", uris, end: now + this.#host.timeout, born: 0 };
    const answered = (m: Message): void => this.#answered(stream, m);
    stream.id = this.#host.ask("subscriptions/listen", { notifications }, answered, false);
    counts.listens++;
    this.#opening = stream;
  }

  #refused(): void {
    this.#opening = undefined;
    this.#retry.failed(this.#host.now);
  }

  acknowledged(id: unknown, uris: unknown[]): void {
    const stream = this.#opening;
    if (!stream || stream.id !== id) return;
    const { wanted, now } = this.#host;
    this.#opening = undefined;
    if (this.#current) {
      this.#current.end = now + linger;
      this.#old.push(this.#current);
      const first = this.#old[0]!;
      if (this.#old.length > maxOld) {
        first.end = 0;
        // Updates that are on their way on it are lost.
        for (const uri of first.uris) this.#host.touch(uri);
      }
    }
    this.#current = stream;
    stream.born = now;
    const granted = new Set(uris);
    for (const uri of stream.uris) {
      if (!wanted.has(uri)) continue;
      const refusal = granted.has(uri) ? "" : "The server does not send updates of this resource";
      this.#host.consent(uri, refusal);
      // A watched URI stays in the set: the listen would otherwise be behind for ever.
      if (!wanted.has(uri)) stream.uris.delete(uri);
    }
  }

  /** A listen's answer: a refusal if it was not acknowledged, otherwise the server's end of it. */
  #answered(stream: Stream, m: Message): void {
    if (stream !== this.#opening) return this.ended(stream.id);
    this.#refused();
    for (const uri of stream.uris) this.#host.consent(uri, reason(m));
  }

  /**
   * reconcile opens another listen, at once if this one lasted 1 s. Then its URIs are announced.
   */
  ended(id: unknown): void {
    if (!this.#open.some((stream) => stream.id === id)) return;
    this.#host.forget(id);
    this.#old = this.#old.filter((stream) => stream.id !== id);
    if (this.#opening?.id === id) this.#refused();
    const stream = this.#current;
    if (!stream || stream.id !== id) return;
    if (this.#host.now - stream.born < 1000) this.#retry.failed(this.#host.now);
    else this.#retry = new Retry();
    for (const uri of stream.uris) this.#host.miss(uri);
    this.#current = undefined;
  }

  deadline(): number {
    const times = this.#old.map(({ end }) => end);
    if (this.#opening) times.push(this.#opening.end);
    else if (this.#behind) times.push(this.#retry.at);
    return Math.min(...times);
  }

  held(): [number, number] {
    const open = this.#open;
    const sizes = [this.#current, this.#opening].map((stream) => stream?.uris.size ?? 0);
    return [Math.max(...sizes), open.length];
  }
}
