/**
 * A wire tap: passes all messages between an MCP client and its transport unchanged, and shows
 * them.
 */
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";

export type Direction = "sent" | "received";

export function tapped(inner: Transport, show: (direction: Direction, message: JSONRPCMessage) => void): Transport {
  const outer: Transport = {
    start: () => inner.start(),
    send: (message, options) => {
      show("sent", message);
      return inner.send(message, options);
    },
    close: () => inner.close(),
  };
  inner.onmessage = (message, extra) => {
    show("received", message);
    outer.onmessage?.(message, extra);
  };
  inner.onerror = (error) => outer.onerror?.(error);
  inner.onclose = () => outer.onclose?.();
  return outer;
}
