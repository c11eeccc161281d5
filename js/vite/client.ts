/**
 * dist/vite.client.js: the module that the Vite plugin adds to a page in development. It installs
 * the page API, connects to a gateway, and offers stores, the route, and the errors of the dev
 * server.
 */
import { pagewire } from "../page/early/module.ts"; // the package's own
import { shared } from "../share/offer.ts";
import { shareStore } from "../share/store.ts";

/** The plugin puts the definition before this module. */
declare const PAGEWIRE_GATEWAY: string;

declare global {
  interface ImportMeta {
    hot: {
      on(event: string, listener: (data: object[]) => void): void;
      send(event: string): void;
    };
  }
}

type Store = Parameters<typeof shareStore>[0];
// biome-ignore lint/suspicious/noExplicitAny: what libraries take and give
type Any = any;

/**
 * Name to the number of its stores, and URI to the store that is shared there, with the function
 * that ends that.
 */
const counts = new Map<string, number>();
const shares = new Map<string, { store: Any; end: () => void }>();
/** URIs that the app has registered. */
const taken = new Set<string>();
/** A member of the resources that this module registers. */
const ours = Symbol();

/**
 * Shares a store. When a module is evaluated again, each of its stores replaces the earlier one by
 * the same URI.
 */
function share(name: string, store: Store, description: string): void {
  const count = (counts.get(name) ?? 0) + 1;
  counts.set(name, count);
  const own = count > 1 ? `${name}-${count}` : name;
  const uri = `${location.origin}/state/${encodeURIComponent(own)}`;
  shares.get(uri)?.end();
  if (taken.has(uri)) return;
  const descriptor = { uri, name: own, description, [ours]: true };
  shares.set(uri, { store, end: shareStore(store, descriptor) });
}

// The app's own resources come first: a share of the same store, or by the same URI, ends.
const context: Any = document.modelContext;
const register = context?.registerResource;
if (register)
  context.registerResource = (resource: Any, ...rest: Any[]) => {
    if (!resource?.[ours]) taken.add(resource?.uri);
    for (const [uri, { store, end }] of resource?.[ours] ? [] : shares) {
      const state = store.getState?.() ?? store.get?.();
      const isSame = (of: unknown) => Object(of) === of && (of === store || of === state);
      if (uri !== resource?.uri && !resource?.[shared]?.some(isSame)) continue;
      shares.delete(uri);
      end();
    }
    register.call(context, resource, ...rest);
  };

/**
 * Wraps `maker`, to share each store that it makes. Zustand's may return a function that makes the
 * store.
 */
export function stores<F extends (...args: Any[]) => Any>(maker: F, name: string): F {
  return ((...args) => {
    const made = maker(...args);
    if (typeof made?.subscribe === "function") share(name, made, `State of a store that ${name} makes.`);
    else if (typeof made === "function") return stores(made, name);
    return made;
  }) as F;
}

/** Pinia's stores have names, and change their state in place. */
export const pinia =
  (maker: () => Any): typeof maker =>
  () =>
    maker().use(({ store }: Any) =>
      share(
        store.$id,
        {
          get: () => store.$state,
          subscribe: (changed: () => void) => store.$subscribe(changed, { detached: true, flush: "sync" }),
        } as Store,
        `State of Pinia's store ${store.$id}.`,
      ),
    );

/** Shares the cache of TanStack Query. Its events of observers do not count. */
export const queries = (Client: new (...args: Any[]) => Any): typeof Client =>
  class QueryClient extends Client {
    constructor(...args: Any[]) {
      super(...args);
      const cache = this.getQueryCache();
      share(
        "queries",
        {
          get: () =>
            cache.getAll().map(({ queryKey, state }: Any) => {
              const { status, fetchStatus, data, error } = state;
              return { key: queryKey, status, fetchStatus, data, ...(error && { error: `${error}` }) };
            }),
          subscribe: (changed: () => void) =>
            cache.subscribe(({ type }: { type: string }) => /^(added|removed|updated)$/.test(type) && changed()),
        } as Store,
        "The queries in TanStack Query's cache.",
      );
    }
  };

pagewire.configure({ gateway: PAGEWIRE_GATEWAY });

// Any router changes the current entry of the session history.
const { navigation } = globalThis as Any;
if (navigation)
  share(
    "route",
    {
      get: () => ({ path: location.pathname + location.search + location.hash, title: document.title }),
      subscribe(changed: () => void) {
        navigation.addEventListener("currententrychange", changed);
        return () => navigation.removeEventListener("currententrychange", changed);
      },
    } as Store,
    "Where the app's router is.",
  );

let errors: object[] = [];
shareStore(
  {
    get: () => errors,
    subscribe(changed: () => void) {
      import.meta.hot.on("pagewire:errors", (now) => {
        errors = now;
        changed();
      });
      return () => {};
    },
  } as Store,
  { uri: "/vite/errors", name: "Vite's errors", description: "Errors of the dev server; none: it builds the app." },
);
import.meta.hot.send("pagewire:errors"); // asks for the present errors

// Written out: Vite recognises import.meta.hot only by these words.
import.meta.hot.on("vite:beforeUpdate", () => counts.clear());
