/**
 * The connection to a server: a channel of JSON-RPC messages, or the official TypeScript client. The client keeps its
 * handlers, ids and caches: the host only listens to the client's transport, and calls its public methods.
 */
import type { ClientLike, Message, Upstream } from "../views.d.ts";

export const isMessage = (data: unknown): data is Message =>
  typeof data === "object" && data !== null && (data as Message).jsonrpc === "2.0";

/** The used part of a transport, the client's or a bridge's. */
export interface TransportLike {
  onmessage?: ((message: never, extra?: never) => void) | undefined;
  onclose?: (() => void) | undefined;
}

export interface Connection {
  /** Undefined while there is no connection. */
  era(): "legacy" | "modern" | undefined;
  /** Whether the server says that it has subscriptions. */
  subscribes(): boolean;
  send(message: Message): void;
  listen(message: (m: Message) => boolean, connection: (era: "legacy" | "modern" | null) => void): void;
}

export function connectionTo(upstream: Upstream | ClientLike): Connection {
  return "request" in upstream ? new ClientConnection(upstream) : raw(upstream);
}

function raw(upstream: Upstream): Connection {
  return {
    era: () => upstream.era,
    subscribes: () => true,
    send: (message) => upstream.send(message),
    listen: (message, connection) => {
      upstream.onmessage = message;
      upstream.onconnection = connection;
    },
  };
}

const updated = "notifications/resources/updated";
const listChanged = "notifications/resources/list_changed";

class ClientConnection implements Connection {
  readonly #client: ClientLike;
  /** The host's running requests, by id. */
  readonly #running = new Map<unknown, AbortController>();
  #message: (m: Message) => boolean = () => false;
  #connection: (era: "legacy" | "modern" | null) => void = () => {};
  #tapped: TransportLike | undefined;

  constructor(client: ClientLike) {
    this.#client = client;
    this.#tap();
    const connect = client.connect;
    client.connect = async (...args) => {
      await connect.apply(client, args);
      this.#tap();
      const era = this.era();
      if (era) this.#connection(era);
    };
  }

  era(): "legacy" | "modern" | undefined {
    return this.#client.transport ? (this.#client.getProtocolEra?.() ?? "legacy") : undefined;
  }

  subscribes(): boolean {
    return !!this.#client.getServerCapabilities()?.resources?.subscribe;
  }

  listen(message: (m: Message) => boolean, connection: (era: "legacy" | "modern" | null) => void): void {
    this.#message = message;
    this.#connection = connection;
  }

  /** Listens to the client's transport: messages are seen here before the client gets them. */
  #tap(): void {
    const transport = this.#client.transport as TransportLike | undefined;
    if (!transport || transport === this.#tapped) return;
    this.#tapped = transport;
    const { onmessage, onclose } = transport as { onmessage?: (...args: unknown[]) => void; onclose?: () => void };
    (transport as { onmessage?: (...args: unknown[]) => void }).onmessage = (message, ...rest) => {
      const m = message as Message;
      if (m.method === updated || m.method === listChanged) this.#message(m);
      onmessage?.call(transport, message, ...rest);
    };
    transport.onclose = () => {
      if (transport === this.#tapped) {
        this.#tapped = undefined;
        this.#connection(null);
      }
      onclose?.call(transport);
    };
  }

  send(message: Message): void {
    const { id, method, params } = message;
    if (method === "notifications/cancelled") {
      const request = params!.requestId;
      this.#running.get(request)?.abort("pagewire: no View wants it any more");
      this.#running.delete(request);
      return;
    }
    const abort = new AbortController();
    this.#running.set(id, abort);
    const answer = (m: object): void => {
      if (this.#running.get(id) === abort) this.#running.delete(id);
      if (!abort.signal.aborted) this.#message({ jsonrpc: "2.0", id, ...m } as Message);
    };
    const asked =
      method === "subscriptions/listen"
        ? this.#listen(id, params!, abort, answer)
        : this.#request(method!, params!, abort).then((result) => answer({ result }));
    asked.catch((cause: { code?: unknown; message?: unknown; data?: unknown }) =>
      answer({
        error: {
          code: Number.isInteger(cause?.code) ? cause.code : -32603,
          message: String(cause?.message ?? cause),
          ...(cause?.data === undefined ? {} : { data: cause.data }),
        },
      }),
    );
  }

  #request(method: string, params: Record<string, unknown>, abort: AbortController): Promise<unknown> {
    const { _meta, ...own } = params; // the client has an envelope of its own
    return this.#client.request({ method, params: own }, { signal: abort.signal });
  }

  async #listen(
    id: unknown,
    params: Record<string, unknown>,
    abort: AbortController,
    answer: (m: object) => void,
  ): Promise<void> {
    const { resourceSubscriptions } = params.notifications as { resourceSubscriptions: string[] };
    const resourcesListChanged = !!this.#client.getServerCapabilities()?.resources?.listChanged;
    const subscription = await this.#client.listen!(
      { resourceSubscriptions, ...(resourcesListChanged && { resourcesListChanged }) },
      { signal: abort.signal },
    );
    if (abort.signal.aborted) return;
    this.#message({
      jsonrpc: "2.0",
      method: "notifications/subscriptions/acknowledged",
      params: {
        _meta: { "io.modelcontextprotocol/subscriptionId": id },
        notifications: { resourceSubscriptions: subscription.honoredFilter.resourceSubscriptions ?? [] },
      },
    });
    if ((await subscription.closed) !== "local") answer({ result: {} });
  }
}
