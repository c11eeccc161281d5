/**
 * dist/store.js: `shareStore`, which offers a store that the page already has.
 *
 * A store is recognised by its shape, `subscribe` and a way to get its value: no library is
 * imported. The value is fetched when an agent reads, so nothing is copied or serialised before. An
 * exception of a selector never reaches the store: it fails the agent's read, and is on the console
 * then.
 */
import type * as types from "../store.d.ts";
import { type Offer, offer, shared, textOf } from "./offer.ts";
import { fitting, jsonSchemaOf } from "./schema.ts";

export { resource, tool } from "./schema.ts";

export const shareStore: typeof types.shareStore = (store, { select, schema, ...descriptor }, { signal } = {}) => {
  const source = sourceOf(store);
  if (typeof document !== "object" || signal?.aborted) return () => {};
  const pick = (state: unknown): unknown => (select ? select(state as never) : state);
  const typeOf = (value: unknown): string =>
    descriptor.mimeType ?? (typeof value === "string" ? "text/plain" : "application/json");

  /** The state now. If it cannot be read, the result equals no other, so it counts as a change. */
  const look = (): Seen => {
    try {
      const state = source.get();
      return { state, value: pick(state) };
    } catch {
      return { state: undefined, value: {} };
    }
  };
  let seen: Seen;
  let offered: Offer | undefined;
  const unsubscribe = source.subscribe(() => {
    const before = seen;
    seen = look();
    if (differs(before, seen, source.immutable)) offered?.changed();
  });
  seen = look();
  offered = offer("shareStore", {
    ...descriptor,
    contentSchema: descriptor.contentSchema ?? jsonSchemaOf(schema),
    mimeType: typeOf(seen.value),
    [shared]: [store, seen.state],
    read() {
      const value = pick(source.get());
      return fitting({ text: textOf(value), mimeType: typeOf(value) }, value, schema, descriptor.uri);
    },
  });
  const stop = (): void => {
    signal?.removeEventListener("abort", stop);
    offered?.end();
    unsubscribe();
  };
  signal?.addEventListener("abort", stop);
  return stop;
};

/** A store of any library. */
interface Source {
  get(): unknown;
  /** Whether its state is never changed in place. */
  readonly immutable: boolean;
  /**
   * Calls back at each later change, not for the present value. Returns a function that ends it.
   */
  subscribe(changed: () => void): () => void;
}

/** Methods that return the value, by precedence: a store may have several. */
const getters = ["getState", "getSnapshot", "getValue", "get", "peek"] as const;

type Unknown = { [name in (typeof getters)[number]]?: () => unknown } & {
  subscribe(listener: Listener | { next: Listener; error(): void }): (() => void) | { unsubscribe(): void } | undefined;
  pipe?: unknown;
};
type Listener = (...args: unknown[]) => void;

function sourceOf(given: unknown): Source {
  const store = given as Unknown;
  if (typeof store?.subscribe !== "function")
    throw new TypeError(
      "shareStore: what it was given is no store, for it has no subscribe(); " +
        "pass { get: () => value, subscribe: (changed) => unsubscribe }",
    );
  const getter = getters.find((name) => typeof store[name] === "function");
  /**
   * The last value that a store without a getter has passed to its listener. Svelte's stores pass
   * one at once.
   */
  let passed: unknown[] = [];
  return {
    get() {
      if (getter) return store[getter]!();
      if (!passed.length) throw new Error("the store has not passed a value yet");
      return passed[0];
    },
    immutable: getter === "getState" || getter === "getSnapshot",
    subscribe(changed) {
      let called = () => {};
      const next: Listener = (...args) => {
        passed = args;
        called();
      };
      // An observable's error is uncaught for a listener that takes none, though the app handles it.
      const subscription = store.subscribe(store.pipe ? { next, error() {} } : next);
      called = changed;
      return () => {
        called = () => {};
        if (typeof subscription === "function") subscription();
        else subscription?.unsubscribe();
      };
    },
  };
}

interface Seen {
  state: unknown;
  value: unknown;
}

/**
 * Whether agents are notified of a change. Object.is decides; a comparison of JSON would serialise
 * at each change, read or not. A store that changes its state in place has the same object after
 * it: then a selected object counts as changed.
 */
const differs = (before: Seen, now: Seen, immutable: boolean): boolean =>
  !Object.is(before.value, now.value) ||
  (!immutable && Object.is(before.state, now.state) && typeof now.value === "object" && now.value !== null);
