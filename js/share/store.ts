/**
 * dist/store.js: `shareStore`, one line for the store that a page has already.
 *
 * Whatever has `subscribe` and a way to get its value is a store, known by its shape: no library is imported. Agents
 * read the value as it is when they read, so nothing is copied or made JSON of before. It never breaks the store that
 * it listens to: what a selector throws is told to the agent that reads, and on the console then.
 */
import type * as types from "../store.d.ts";
import { type Offer, offer, textOf } from "./offer.ts";

export const shareStore: typeof types.shareStore = (store, { select, ...descriptor }, { signal } = {}) => {
  const source = sourceOf(store);
  if (typeof document !== "object" || signal?.aborted) return () => {};
  const pick = (state: unknown): unknown => (select ? select(state as never) : state);
  const typeOf = (value: unknown): string =>
    descriptor.mimeType ?? (typeof value === "string" ? "text/plain" : "application/json");

  /** What there is now. What cannot be got is like nothing else, so that it counts as a change. */
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
    mimeType: typeOf(seen.value),
    read() {
      const value = pick(source.get());
      return { text: textOf(value), mimeType: typeOf(value) };
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
  /** Its state is never changed in place. */
  readonly immutable: boolean;
  /** Calls back from now on, and not for what is there already. Returns what ends it. */
  subscribe(changed: () => void): () => void;
}

/** Methods that give the value, in the order in which they are looked for: a store may have several. */
const getters = ["getState", "getSnapshot", "getValue", "get", "peek"] as const;

type Unknown = { [name in (typeof getters)[number]]?: () => unknown } & {
  subscribe(listener: (...args: unknown[]) => void): (() => void) | { unsubscribe(): void } | undefined;
};

function sourceOf(given: unknown): Source {
  const store = given as Unknown;
  if (typeof store?.subscribe !== "function")
    throw new TypeError(
      "shareStore: what it was given is no store, for it has no subscribe(); " +
        "pass { get: () => value, subscribe: (changed) => unsubscribe }",
    );
  const getter = getters.find((name) => typeof store[name] === "function");
  /** What a store without a getter has passed to its subscriber last: Svelte's do so as soon as there is one. */
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
      const subscription = store.subscribe((...args) => {
        passed = args;
        called();
      });
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
 * Whether agents are told. Object.is decides, and not the JSON, which would be made for each change whether anybody
 * reads or not. But where state may be changed in place, a store calls with the object that it had before: as long as
 * the state is the same object, an object in it may be another inside.
 */
const differs = (before: Seen, now: Seen, immutable: boolean): boolean =>
  !Object.is(before.value, now.value) ||
  (!immutable && Object.is(before.state, now.state) && typeof now.value === "object" && now.value !== null);
