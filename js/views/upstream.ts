/**
 * The connection to a server: a channel of JSON-RPC messages, or the official TypeScript client.
 * The client keeps its handlers, ids and caches: the host only listens to the client's transport,
 * and calls its public methods.
 */
import type { ClientLike, Message, Upstream } from "../views.d.ts";

export const isMessage = (data: unknown): data is Message =>
  typeof data === "object" && data !== null && (data as Message).jsonrpc === "2.0";

/** The used part of a transport, the client's or a bridge's. */
export interface TransportLike {
  onmessage?: ((message: Message, ...rest: unknown[]) => void) | undefined;
  onclose?: (() => void) | undefined;
}

/** An Upstream, or the official client in the place of one. */
export interface Connection extends Omit<Upstream, "era"> {
  /** Undefined while there is no connection. */
  readonly era: Upstream["era"] | undefined;
  /** False: the server says that it has no subscriptions. */
  readonly subscribes?: boolean;
}

const updated = "notifications/resources/updated";
const listChanged = "notifications/resources/list_changed";

export class ClientConnection implements Connection {
  readonly #client: ClientLike;
  /** The host's running requests, by id. */
  readonly #running = new Map<unknown, AbortController>();
  /** Both are set by the Server. */
  onmessage: Upstream["onmessage"];
  onconnection: Upstream["onconnection"];
  /** The transport that is listened to; undefined while the connection is lost. */
  #tapped: TransportLike | undefined;

  constructor(client: ClientLike) {
    this.#client = client;
    this.#tap();
    const connect = client.connect;
    client.connect = async (...args) => {
      await connect.apply(client, args);
      this.#tap();
      if (this.era) this.onconnection?.(this.era);
    };
  }

  get era(): Upstream["era"] | undefined {
    return this.#client.transport ? (this.#client.getProtocolEra?.() ?? "legacy") : undefined;
  }

  get subscribes(): boolean {
    return !!this.#client.getServerCapabilities()?.resources?.subscribe;
  }

  /** Listens to the client's transport: messages are seen here before the client gets them. */
  #tap(): void {
    const transport = this.#client.transport as TransportLike | undefined;
    if (!transport || transport === this.#tapped) return;
    this.#tapped = transport;
    const { onmessage, onclose } = transport;
    transport.onmessage = (message, ...rest) => {
      const { method } = message;
      if (method === updated || method === listChanged) this.onmessage?.(message);
      onmessage?.call(transport, message, ...rest);
    };
    transport.onclose = () => {
      if (transport === this.#tapped) {
        this.#tapped = undefined;
        this.onconnection?.(null);
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
      if (!abort.signal.aborted) this.onmessage?.({ jsonrpc: "2.0", id, ...m } as Message);
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
    this.onmessage?.({
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
