/**
 * dist/dev.js: `pagewire/dev`, for an app in development. Importing it installs the page API,
 * connects to a gateway, and offers the app's stores, its route, its errors, its failed requests
 * and what the developer points at. A second copy on a page does nothing.
 */
import { pagewire } from "../page/early/module.ts"; // the package's own
import { findStores } from "./found.ts";
import { inert } from "./inert.ts";
import { followNext } from "./next.ts";
import { buildErrors, shareErrors, shareRequests, shareRoute } from "./page.ts";
import { startPicker } from "./pick.ts";
import { expire, giveWay, settle, share as shareStore } from "./share.ts";
import { pinia as wrapPinia, queries as wrapQueries, stores as wrapStores } from "./stores.ts";

declare const process: { env: { NODE_ENV?: string; PAGEWIRE_GATEWAY?: string } };
declare global {
  interface ImportMeta {
    hot?: { on(event: string, listener: (data: never) => unknown): void; send(event: string): void };
  }
}

/** Bundlers replace each variable where it is written out; a page has no `process` of its own. */
function variable(read: () => string | undefined): string | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

function start() {
  giveWay();
  pagewire.configure({ gateway: variable(() => process.env.PAGEWIRE_GATEWAY) || "ws://127.0.0.1:7433" });
  shareRoute();
  const requests = shareRequests();
  const errors = shareErrors(requests.add);
  startPicker();
  findStores();
  const renewed = () => {
    expire();
    requests.clear();
    errors.clear();
  };
  // Written out: Vite recognises import.meta.hot only by these words.
  if (import.meta.hot) {
    let exact = false; // the plugin tells the server's errors, until each is mended
    import.meta.hot.on("vite:beforeUpdate", () => {
      renewed();
      if (!exact) buildErrors([]);
    });
    import.meta.hot.on("vite:afterUpdate", settle);
    import.meta.hot.on("vite:error", ({ err }: { err: object }) => exact || buildErrors([err]));
    import.meta.hot.on("pagewire:errors", (now: object[]) => {
      exact = true;
      buildErrors(now);
    });
    import.meta.hot.send("pagewire:errors"); // asks for the present errors
  }
  followNext(buildErrors, renewed);
  return { share: shareStore, stores: wrapStores, pinia: wrapPinia, queries: wrapQueries };
}

const key = Symbol.for("pagewire.dev");
const page = globalThis as { [key: symbol]: ReturnType<typeof start> | undefined };
const isProduction = variable(() => process.env.NODE_ENV) === "production";
/** The copy that came first. */
export const { share, stores, pinia, queries } = (page[key] ??= isProduction ? inert() : start());
