/**
 * dist/dev.js: `pagewire/dev`, for an app in development. Importing it installs the page API,
 * connects to a gateway, and offers the app's stores, its route, its errors, its failed requests
 * and what the developer points at. A second copy on a page does nothing.
 */
import { pagewire } from "../page/early/module.ts"; // the package's own
import { buildErrors, shareErrors, shareRequests, shareRoute } from "./page.ts";
import { startPicker } from "./pick.ts";
import { expire, giveWay, share as shareStore } from "./share.ts";
import { pinia as wrapPinia, queries as wrapQueries, stores as wrapStores } from "./stores.ts";

declare const process: { env: { NODE_ENV?: string; PAGEWIRE_GATEWAY?: string } };
declare global {
  interface ImportMeta {
    hot?: { on(event: string, listener: (data: never) => void): void; send(event: string): void };
  }
}

/** Bundlers replace the variable. */
function gatewayOf(): string {
  try {
    return process.env.PAGEWIRE_GATEWAY || "ws://127.0.0.1:7433";
  } catch {
    return "ws://127.0.0.1:7433";
  }
}

function start() {
  giveWay();
  pagewire.configure({ gateway: gatewayOf() });
  shareRoute();
  const requests = shareRequests();
  const errors = shareErrors(requests.add);
  startPicker();
  // Written out: Vite recognises import.meta.hot only by these words.
  if (import.meta.hot) {
    import.meta.hot.on("vite:beforeUpdate", () => {
      expire();
      requests.clear();
      errors.clear();
    });
    import.meta.hot.on("pagewire:errors", buildErrors);
    import.meta.hot.send("pagewire:errors"); // asks for the present errors
  }
  return { share: shareStore, stores: wrapStores, pinia: wrapPinia, queries: wrapQueries };
}

const key: unique symbol = Symbol.for("pagewire.dev") as never;
const page = globalThis as { [key]?: ReturnType<typeof start> };
export const { share, stores, pinia, queries } = (page[key] ??= start());
