/** MCP over a MessagePort that a client has posted to the page: one session. */
import type { Carrier, Port } from "../early/shared.ts";
import { closePort, listen, messageData, postToPort, startPort, stringify, unlisten } from "../common/intrinsics.ts";

/**
 * `{type: "pagewire:close"}`, from either side, ends a MessagePort's session. It is the only
 * message that is no JSON-RPC, and it is needed: Chromium 156 has no `close` event on ports, so
 * neither side would learn of the other's close().
 */
export async function servePort(
  port: MessagePort,
  source: MessageEventSource | null,
  open: (carrier: Carrier) => Promise<Port>,
): Promise<void> {
  // A frame or window that unloads takes its end of the port with it, without a message. A frozen
  // one (bfcache) keeps it. A window of another origin takes no listener: once it is closed, the
  // next message for it closes the port.
  const elsewhere = source === globalThis.window ? null : (source as Window | null);
  const onpagehide = ({ isTrusted, persisted }: PageTransitionEvent) =>
    persisted || !isTrusted || close("its window is gone");
  const closed = (reason: string) => {
    try {
      if (elsewhere) unlisten(elsewhere, "pagehide", onpagehide);
    } catch {}
    postToPort(port, { type: "pagewire:close", reason });
    closePort(port);
  };
  let gone = "";
  let close = (reason: string): void => {
    gone ||= reason;
  };
  try {
    if (elsewhere) listen(elsewhere, "pagehide", onpagehide);
  } catch {}
  try {
    const deliver = (message: object) => (elsewhere?.closed ? close("its window is gone") : postToPort(port, message));
    const session = await open({ deliver, closed });
    close = session.close;
    if (gone) return close(gone);
    listen(port, "message", (event: MessageEvent) => {
      const data = messageData(event);
      if ((data as { type?: unknown } | null | undefined)?.type === "pagewire:close") close("closed by the client");
      else session.receive(toText(data));
    });
    listen(port, "messageerror", () => session.receive("undeserialisable"));
    listen(port, "close", () => close("closed by the client"));
    startPort(port); // until here the browser has kept its messages
  } catch (cause) {
    closed((cause as Error).message);
  }
}

/**
 * The JSON text of a message that a client posted. A value without JSON becomes text that is no
 * JSON, so that the core answers -32700.
 */
export function toText(message: unknown): string {
  try {
    return stringify(message) ?? "undefined";
  } catch {
    return "unserialisable";
  }
}
