/**
 * The edge between JavaScript and Go for a page that hosts Views: the other side of wasm/views/edge.go.
 *
 * What travels: numbers, and text through the instance's linear memory; a message is one piece of JSON text. This side
 * calls the exports; messages of Hosts come by the imports below. Answers: an export returns at once. On close:
 * see js/core/instance.ts.
 *
 * It never lets an exception reach Go, where it would leave half-finished state, and keeps no view of the memory across
 * a call that may make it grow.
 */
import { guarded, instantiate, now } from "../core/instance.ts";

/** The exports of wasm/views/edge.go. */
interface Exports {
  buffer(bytes: number): number;
  create(era: number, subscriptions: number, limitCode: number, updateInterval: number, readTimeout: number): number;
  destroy(host: number): number;
  open(now: number, host: number, view: number): number;
  shut(now: number, host: number, view: number): number;
  teardown(now: number, host: number, view: number): number;
  receive(now: number, host: number, view: number, bytes: number): number;
  fromServer(now: number, host: number, bytes: number): number;
  learn(now: number, host: number, bytes: number): number;
  connection(now: number, host: number, era: number): number;
  tick(now: number): number;
  tell(host: number, counts: number): number;
}

/** Calls of the core, for one host. */
export interface HostEvents {
  toView(view: number, text: string): void;
  toServer(text: string): void;
  /** The core is gone: it makes no further call. */
  dead(reason: string): void;
}

/** The options of a host, as numbers; 0 means the default. */
export interface HostOptions {
  era: 0 | 1;
  maxSubscriptions: number;
  limitCode: number;
  updateInterval: number;
  readTimeout: number;
}

/** One host of the core. It serves the Views of one server. */
export interface CoreHost {
  open(view: number): boolean;
  shut(view: number): void;
  teardown(view: number): void;
  /** Reports whether the message was taken, and will be answered. */
  receive(view: number, text: string): boolean;
  fromServer(text: string): boolean;
  learn(uri: string): void;
  connection(era: -1 | 0 | 1): void;
  capabilities(): string;
  stats(): string;
  end(): void;
}

export type Core = (events: HostEvents, options: HostOptions) => CoreHost;

/** Fetches, compiles and starts a core. Rejects with an error that says what to do. */
export async function start(url: string, integrity: string): Promise<Core> {
  return attach(await compile(url, integrity));
}

async function compile(url: string, integrity: string): Promise<WebAssembly.Module> {
  const hint = "pagewire.views.wasm lies beside views.js; the option `wasm` names another place";
  let response: Response;
  try {
    response = await fetch(url, { integrity });
  } catch (cause) {
    const why = integrity
      ? "unreachable, forbidden by connect-src, or not what the option `integrity` says"
      : "unreachable, or forbidden by connect-src";
    throw new Error(`pagewire: could not fetch ${url}: ${why}; ${hint}`, { cause });
  }
  if (!response.ok) throw new Error(`pagewire: could not fetch ${url}: HTTP ${response.status}; ${hint}`);
  try {
    return /^application\/wasm\b/i.test(response.headers.get("content-type") ?? "")
      ? await WebAssembly.compileStreaming(response)
      : await WebAssembly.compile(await response.arrayBuffer());
  } catch (cause) {
    throw new Error(
      `pagewire: could not compile ${url}: if this page's Content-Security-Policy forbids wasm, allow 'wasm-unsafe-eval' in script-src`,
      { cause },
    );
  }
}

async function attach(module: WebAssembly.Module): Promise<Core> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let answer = "";
  const hosts = new Map<number, HostEvents>();

  const imports = (text: (at: number, length: number) => string) => ({
    toView(host: number, id: number, at: number, length: number): void {
      const message = text(at, length);
      guarded(() => hosts.get(host)?.toView(id, message));
    },
    toServer(host: number, at: number, length: number): void {
      const message = text(at, length);
      guarded(() => hosts.get(host)?.toServer(message));
    },
    told(at: number, length: number): void {
      answer = text(at, length);
    },
    report(at: number, length: number): void {
      console.error(`pagewire: ${text(at, length)}`);
    },
    wake(at: number): void {
      clearTimeout(timer);
      if (at >= 0) timer = setTimeout(() => enter((e) => e.tick(now())), Math.max(0, at - now()));
    },
  });
  const { enter, write } = await instantiate<Exports>(module, {}, imports, (reason) => {
    clearTimeout(timer);
    console.error(`pagewire: ${reason}`);
    for (const events of hosts.values()) guarded(() => events.dead(reason));
    hosts.clear();
  });

  return (events, o) => {
    const host = enter((e) => e.create(o.era, o.maxSubscriptions, o.limitCode, o.updateInterval, o.readTimeout));
    if (!host) throw new Error("pagewire: the core of Views has ended; attach again, and a new one is started");
    hosts.set(host, events);
    const ask = (counts: number): string => (enter((e) => e.tell(host, counts)) ? answer : "{}");
    return {
      open: (id) => enter((e) => e.open(now(), host, id)) > 0,
      shut: (id) => void enter((e) => e.shut(now(), host, id)),
      teardown: (id) => void enter((e) => e.teardown(now(), host, id)),
      receive: (id, message) => enter((e) => e.receive(now(), host, id, write(message))) > 0,
      fromServer: (message) => enter((e) => e.fromServer(now(), host, write(message))) > 0,
      learn: (uri) => void enter((e) => e.learn(now(), host, write(uri))),
      connection: (era) => void enter((e) => e.connection(now(), host, era)),
      capabilities: () => ask(0),
      stats: () => ask(1),
      end: () => {
        hosts.delete(host);
        enter((e) => e.destroy(host));
      },
    };
  };
}
