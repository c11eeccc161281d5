/** A server that Views came from, and its host in the core. All servers of the page share the core. */
import { type Core, type CoreHost, start } from "./edge.ts";
import { type Connection, connectionTo } from "./upstream.ts";
import type { View } from "./view.ts";
import type { AttachOptions, ClientLike, Message, Upstream } from "../views.d.ts";

let core: { of: string; started: Promise<Core> } | undefined;

/** The core at a URL, started once; again if the start failed, the core has died, or the integrity value differs. */
function coreAt(url: string, integrity = ""): Promise<Core> {
  const of = `${integrity} ${url}`;
  if (core?.of !== of) {
    const mine = { of, started: start(url, integrity) };
    core = mine;
    mine.started.catch(() => {
      if (core === mine) core = undefined;
    });
  }
  return core!.started;
}

/** A server: one for each client or channel. */
export class Server {
  static readonly #known = new WeakMap<object, Server>();

  /** One for each upstream, so that its Views share its subscriptions. The options of the first attachment count. */
  static of(upstream: Upstream | ClientLike, options: AttachOptions): Server {
    let server = Server.#known.get(upstream);
    if (!server || server.state === "failed" || server.state === "ended")
      Server.#known.set(upstream, (server = new Server(server?.connection ?? connectionTo(upstream), options)));
    return server;
  }

  readonly connection: Connection;
  readonly ready: Promise<void>;
  readonly views = new Map<number, View>();
  /** Set while the server is `running`. */
  host: CoreHost | undefined;
  /** `failed`: the core could not be started, or has died. `ended`: neither a View nor a connection was left. */
  state: "starting" | "running" | "failed" | "ended" = "starting";
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
      const make = await coreAt(url, o.integrity);
      const era = this.connection.era();
      this.host = make(this.#events(), {
        era: era === "modern" ? 1 : 0,
        maxSubscriptions: o.maxSubscriptions ?? 0,
        limitCode: o.limitCode ?? 0,
        updateInterval: o.updatesPerSecond ? Math.ceil(1000 / o.updatesPerSecond) : 0,
        readTimeout: o.timeout ?? 0,
      });
      this.state = "running";
      if (!era) this.host.connection(-1);
    } catch (cause) {
      this.state = "failed";
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

  /** Ends the host in the core when no View and no connection is left: a page may have many clients in its life. */
  #endIfIdle(): void {
    if (this.views.size || this.#connected || !this.host) return;
    this.host.end();
    this.host = undefined;
    this.state = "ended";
  }

  #events() {
    return {
      toView: (id: number, text: string) => this.views.get(id)?.send(JSON.parse(text) as Message),
      toServer: (text: string) => this.connection.send(JSON.parse(text) as Message),
      dead: (reason: string) => {
        // Subscriptions are gone. A View whose request fails polls; the next attachment starts a new core.
        console.error(`pagewire: ${reason}: Views are no longer told of changes`);
        this.host = undefined;
        this.state = "failed";
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
