/**
 * The resources of `pagewire/dev`: stores at `/state/NAME`, and lists of what has happened at
 * `/dev/NAME`. The app's own resources come first: a share of the same store, or by the same URI,
 * ends.
 */
import { shared } from "../share/offer.ts";
import { shareStore } from "../share/store.ts";
import type { AnyStore } from "../store.d.ts";
import { plain, redaction } from "./plain.ts";

// biome-ignore lint/suspicious/noExplicitAny: what libraries take and give
export type Any = any;

const note = ` What looks like a password or a token reads as ${redaction}.`;
/** Shares by one name. More are those of a store that an app makes over and over. */
const most = 20;

interface Share {
  readonly store: Any;
  /** The module that makes the store, if known; null: whoever shares it ends the share in time. */
  readonly from: string | null | undefined;
  end(): void;
  /** Whether the next share by the name takes the place, since the store's module has changed. */
  stale?: boolean;
}
const shares = new Map<string, Share>();
/** URIs that the app has registered, and what tells its shared stores and states. */
const taken = new Set<string>();
const owned = new WeakSet<object>();
/** A member of the resources that this module registers. */
const ours = Symbol();

/** What tells a store: itself, its state, and a method, as one store may be several objects. */
function marks(store: Any): object[] {
  const of = [store, store?.getState];
  try {
    of.push(store.getState?.() ?? store.get?.());
  } catch {} // another library's get() wants an argument
  return of.filter((mark) => Object(mark) === mark);
}

/** Whether a store is shared, by this module or by the app. */
export function isShared(store: Any): boolean {
  const of = marks(store);
  const isOne = (other: Any) => other === store || (store.getState && other.getState === store.getState);
  return of.some((mark) => owned.has(mark)) || [...shares.values()].some((share) => isOne(share.store));
}

/**
 * Shares a store at `/state/NAME`, or `/state/NAME-2` if the name is taken. Returns what ends it.
 * It takes the place of one that the same module has made before an update.
 */
export function share(
  name: string,
  store: AnyStore,
  description = `The store ${name}.`,
  from?: string | null,
): () => void {
  for (let count = 1; count <= most; count++) {
    const own = count > 1 ? `${name}-${count}` : name;
    const path = `/state/${encodeURIComponent(own)}`;
    const before = shares.get(location.origin + path);
    if (before && !(before.stale && before.from === from)) continue;
    before?.end();
    return shareAt(path, own, store, description, from);
  }
  return () => {};
}

/** Never throws: the app must work, whatever its stores do. */
export function shareAt(
  path: string,
  name: string,
  store: AnyStore,
  description: string,
  from?: string | null,
): () => void {
  const uri = location.origin + path;
  if (taken.has(uri)) return () => {};
  // The copy is made when an agent reads. A state that is the same object has the same value.
  let last: unknown;
  let value: unknown;
  const select = (state: unknown): unknown => {
    if (!Object.is(state, last)) value = Object(state) === state ? { toJSON: () => plain(state) } : plain(state);
    last = state;
    return value;
  };
  const resource = { uri, name, description: description + note, select, [ours]: true };
  try {
    const stop = shareStore(store, resource);
    const share: Share = {
      store,
      from,
      end() {
        if (shares.get(uri) === share) shares.delete(uri);
        stop();
      },
    };
    shares.set(uri, share);
    return share.end;
  } catch (error) {
    console.warn(`pagewire/dev: ${name} is not shared:`, error);
    return () => {};
  }
}

/** Marks the shares whose stores' modules may be evaluated again now. */
export function expire(): void {
  for (const share of shares.values()) share.stale = share.from !== null;
}

/** Ends that: all modules are evaluated, and what has no successor lives on. */
export function settle(): void {
  for (const share of shares.values()) share.stale = false;
}

/** A list of what happens. */
export interface List {
  /** Adds an entry at the end. The same entry once more is only counted. */
  add(entry: object): void;
  clear(): void;
  /** What comes first has changed. */
  changed(): void;
}
/** Entries of a list. Newer ones take the place of older ones. */
const entries = 20;

/** Shares a list at `/dev/NAME`, after what `first` returns. */
export function list(name: string, description: string, first: () => object[] = () => []): List {
  const known = new Map<string, object & { times?: number }>();
  let now: object[] = [];
  let tell = (): void => {};
  const changed = () => {
    now = [...first(), ...known.values()];
    tell();
  };
  const subscribe = (changed: () => void) => {
    tell = changed;
    return () => {};
  };
  shareAt(`/dev/${name}`, name, { get: () => now, subscribe } as AnyStore, description);
  return {
    changed,
    add(entry) {
      const key = JSON.stringify(entry);
      const same = known.get(key);
      if (same) {
        same.times = (same.times ?? 1) + 1;
        return;
      }
      known.set(key, entry);
      for (const oldest of [...known.keys()].slice(0, -entries)) known.delete(oldest);
      changed();
    },
    clear() {
      if (!known.size) return;
      known.clear();
      changed();
    },
  };
}

/** Ends a share when the app registers the same store, or the same URI. */
export function giveWay(): void {
  const context: Any = document.modelContext;
  const register = context?.registerResource;
  if (!register) return;
  context.registerResource = (resource: Any, ...rest: Any[]) => {
    if (!resource?.[ours]) {
      const own = `${resource?.uri}`; // it may be a URL object
      taken.add(own);
      const theirs = (resource?.[shared] ?? []).flatMap(marks);
      for (const mark of theirs) owned.add(mark);
      for (const [uri, share] of shares)
        if (uri === own || marks(share.store).some((mark) => theirs.includes(mark))) share.end();
    }
    register.call(context, resource, ...rest);
  };
}
