/** Wrappers of what makes stores, which the Vite plugin puts in place of a library's exports. */
import type { AnyStore } from "../store.d.ts";
import { textOf } from "./plain.ts";
import { type Any, share } from "./share.ts";

/**
 * Wraps `maker`, to share each store that it makes. Zustand's may return a function that makes the
 * store.
 */
export function stores<F extends (...args: Any[]) => Any>(maker: F, name: string, from?: string): F {
  return ((...args) => {
    const made = maker(...args);
    if (typeof made?.subscribe === "function") share(name, made, `State of a store that ${name} makes.`, from);
    else if (typeof made === "function") return stores(made, name, from);
    return made;
  }) as F;
}

/** What is shared already: it comes from the plugin, and from what a page of it shows. */
const adopted = new WeakSet<object>();
const isKnown = (one: object): boolean => adopted.has(one) || !adopted.add(one);

/** Shares the stores of a Pinia, which have names, and change their state in place. */
export function adoptPinia(pinia: Any): Any {
  if (isKnown(pinia)) return pinia;
  const shareOne = (store: Any) => {
    const subscribe = (changed: () => void) => store.$subscribe(changed, { detached: true, flush: "sync" });
    const state = { get: () => store.$state, subscribe } as AnyStore;
    share(store.$id, state, `State of Pinia's store ${store.$id}.`);
  };
  for (const store of pinia._s.values()) shareOne(store);
  return pinia.use(({ store }: Any) => shareOne(store));
}
export const pinia =
  (maker: () => Any): typeof maker =>
  () =>
    adoptPinia(maker());

/** Shares the cache of TanStack Query. Its events of observers do not count. */
export function adoptClient(client: Any, from?: string | null): () => void {
  if (isKnown(client)) return () => {};
  const cache = client.getQueryCache();
  const get = () =>
    cache.getAll().map(({ queryKey, state }: Any) => {
      const { status, fetchStatus, data, error } = state;
      return { key: queryKey, status, fetchStatus, data, ...(error && { error: textOf(error) }) };
    });
  const subscribe = (changed: () => void) =>
    cache.subscribe(({ type }: { type: string }) => /^(added|removed|updated)$/.test(type) && changed());
  return share("queries", { get, subscribe } as AnyStore, "The queries in TanStack Query's cache.", from);
}
export const queries = (Client: new (...args: Any[]) => Any, _name?: string, from?: string): typeof Client =>
  class QueryClient extends Client {
    constructor(...args: Any[]) {
      super(...args);
      adoptClient(this, from);
    }
  };
