import type { Message } from "../views.d.ts";

export function isMessage(data: unknown): data is Message {
  return typeof data === "object" && data !== null && (data as Message).jsonrpc === "2.0";
}
