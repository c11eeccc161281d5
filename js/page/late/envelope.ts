/**
 * MCP over window.postMessage, in the envelope of @mcp-b's tab transport: its clients work
 * unchanged. agents.ts has checked where a message comes from and that it is in the envelope.
 *
 * All clients of a window share it. The envelope names no client. Each client sees every answer,
 * and takes an answer whose id it waits for. So no server can keep clients apart. This server does
 * the following:
 *
 *   - Each `initialize` starts a session. All other messages go to the newest session; a cancellation goes to that of
 *     its request. So a client may act in another's session, but it can only see more than it asked for.
 *   - Each id is answered once, verbatim: while ids are distinct, no client gets another's answer. A request under an
 *     id that is still unanswered is refused, since otherwise one of the two would get a wrong answer.
 *   - One confusion cannot be noticed: a client sends an id while the answer to another client's same id is on its way.
 *   - A session whose client has gone cannot be recognised, so a ninth session closes the oldest.
 *   - A notification to several sessions in one turn is posted once.
 *
 * A client that wants a session of its own uses pagewire.connect() or posts a port.
 */
import { isObject } from "../early/basics.ts";
import { microtask, postToWindow, SafeMap, stringify } from "../common/intrinsics.ts";
import { toText } from "./messageport.ts";
import type { Carrier, Early, Port } from "../early/shared.ts";

const maxSessions = 8;

const envelope = (payload: unknown) => ({
  channel: "mcp-default",
  type: "mcp",
  direction: "server-to-client",
  payload,
});

interface Session {
  port: Promise<Port>;
}

export function envelopes({ settings }: Early, open: (carrier: Carrier) => Promise<Port>) {
  /** Number to session, oldest first. */
  const sessions = new SafeMap<number, Session>();
  let newest = 0;
  /** Request id to the number of the session that owes the answer. */
  const pending = new SafeMap<unknown, number>();
  /** Texts of the notifications posted in this turn. */
  const posted = new SafeMap<string, boolean>();

  const post = (payload: unknown) => postToWindow(envelope(payload), settings.origin);

  function add(): number {
    const number = ++newest;
    const deliver = (message: object) => {
      const { id, method } = message as { id?: unknown; method?: string };
      if (method === undefined) {
        if (pending.get(id) !== number && id !== null) return; // another session has the id now, or it was answered
        pending.delete(id);
      } else {
        const text = stringify(message);
        if (posted.has(text)) return;
        posted.set(text, true);
        microtask(() => posted.delete(text));
      }
      post(message);
    };
    const closed = (_reason: string, failure: boolean) => {
      drop(number);
      // Clients see one server. It has stopped when the core is gone, not when one session is.
      if (failure && !sessions.size) post("mcp-server-stopped");
    };
    sessions.set(number, { port: open({ deliver, closed }) });
    if (sessions.size > maxSessions) {
      let oldest: Session | undefined;
      let its = 0;
      sessions.forEach((session, key) => (oldest ? 0 : ((oldest = session), (its = key))));
      drop(its);
      void (async () => (await oldest!.port).close("newer clients of the window have come"))();
    }
    return number;
  }

  function drop(number: number): void {
    sessions.delete(number);
    pending.forEach((owner, id) => owner === number && pending.delete(id));
  }

  /** Takes a payload. Rejects if the core cannot be started. */
  return async (payload: unknown): Promise<void> => {
    if (!isObject(payload)) return;
    const { id, method, params } = payload as { id?: unknown; method?: unknown; params?: { requestId?: unknown } };
    let number = sessions.has(newest) && method !== "initialize" ? newest : add();
    if (method === "notifications/cancelled") {
      number = pending.get(params?.requestId) ?? number;
      pending.delete(params?.requestId); // it gets no answer, and a client's ids begin anew with it
    }
    if (method !== undefined && id !== undefined) {
      if (pending.has(id) && method !== "initialize") {
        pending.delete(id);
        post({
          jsonrpc: "2.0",
          id,
          error: { code: -32600, message: "Another request of this window waits under the same id: use a port" },
        });
        return;
      }
      pending.set(id, number);
    }
    (await sessions.get(number)?.port)?.receive(toText(payload));
  };
}
