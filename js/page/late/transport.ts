/**
 * What a transport of pagewire.connect() does: one session of the core in the page. Messages are
 * delivered in microtasks, in order, never from within `send`. Handlers are looked up for each
 * message, since clients replace them.
 */
import type { PagewireTransport } from "../../pagewire.d.mts";
import { microtask } from "../common/intrinsics.ts";
import type { Carrier, Port, Session } from "../early/shared.ts";

export function connect(transport: PagewireTransport, open: (carrier: Carrier) => Promise<Port>): Session {
  let ended = "";
  const end = (reason: string, failure: boolean) => {
    if (ended) return;
    ended = reason;
    // Two microtasks, so that onclose is called even if onerror throws.
    if (failure) microtask(() => transport.onerror?.(new Error(reason)));
    microtask(() => transport.onclose?.());
  };
  const port = (async () => {
    try {
      return await open({ deliver: (message) => ended || transport.onmessage?.(message), closed: end });
    } catch (cause) {
      end((cause as Error).message, true);
    }
  })();
  return {
    async send(text) {
      const late = ended; // what was sent before close() arrives before it
      const opened = await port; // later messages follow in order
      if (late || !opened) throw new Error(`pagewire: the transport is closed: ${ended}`);
      opened.receive(text ?? "undefined");
    },
    async close() {
      end("closed by the client", false);
      (await port)?.close(ended);
    },
  };
}
