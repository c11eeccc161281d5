/** The errors of Next.js' dev server, which it tells over a WebSocket that only its own script reads. */
import type { Any } from "./share.ts";

/** `built` gets the present errors, and `renewed` is called when the code has changed. */
export function followNext(built: (errors: object[]) => void, renewed: () => void): void {
  if (!("__next_f" in globalThis) && !document.getElementById("__NEXT_DATA__")) return;
  const listen = ({ data }: MessageEvent) => {
    try {
      const { type, errors, data: updates } = JSON.parse(data);
      // "built" is told of a page that was compiled for the first time, too.
      if (type === "turbopack-message" && [updates].flat().some((update) => update.type === "partial")) renewed();
      if (type === "built" || type === "sync") built(errors);
    } catch {} // some messages are not JSON
  };
  globalThis.WebSocket = new Proxy(WebSocket, {
    construct(of, args, made): Any {
      const socket = Reflect.construct(of, args, made);
      if (/\/_next\/(webpack-)?hmr/.test(`${args[0]}`)) socket.addEventListener("message", listen);
      return socket;
    },
  });
}
