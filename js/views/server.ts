/**
 * A server that Views came from: its connection, and the rules for its Views, with the page's clock
 * and timer.
 */
import { Host } from "./host.ts";
import { ClientConnection, type Connection } from "./upstream.ts";
import type { AttachOptions, ClientLike, Upstream } from "../views.d.ts";

const now = (): number => Math.floor(performance.now());

export class Server {
  static readonly #known = new WeakMap<object, Server>();

  /**
   * One for each upstream, so that its Views share its subscriptions. The options of the first
   * attachment count.
   */
  static of(upstream: Upstream | ClientLike, options: AttachOptions): Server {
    let server = Server.#known.get(upstream);
    if (!server) {
      const connection = "request" in upstream ? new ClientConnection(upstream) : upstream;
      Server.#known.set(upstream, (server = new Server(connection, options)));
    }
    return server;
  }

  readonly connection: Connection;
  readonly host: Host;
  /** The only one: when the host has work next. */
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(connection: Connection, options: AttachOptions) {
    this.connection = connection;
    const wake = (at: number | undefined): void => {
      clearTimeout(this.#timer);
      // A longer time would be none to setTimeout.
      const ms = Math.min(Math.max(0, at! - now()), 2 ** 31 - 1);
      this.#timer = at === undefined ? undefined : setTimeout(() => this.host.tick(), ms);
    };
    this.host = new Host(connection.era, { now, wake, toServer: (m) => connection.send(m) }, options);
    connection.onmessage = (m) => this.host.fromServer(m);
    connection.onconnection = (era) => this.host.connection(era);
  }
}
