/**
 * Finds stores in a running app, for bundlers without a plugin of Pagewire: by what React and Vue
 * leave at the elements that they render into, and by what MobX and Redux Toolkit offer to
 * developers' tools. No hook of such a tool is replaced, so the tools work as before.
 *
 * A store that React's tree has no more is shared no more.
 */
import type { AnyStore } from "../store.d.ts";
import { type Any, isShared, share } from "./share.ts";
import { adoptClient, adoptPinia } from "./stores.ts";

/** Shares of stores in React's tree, with the number of the walk that saw the store last. */
const seen = new Map<object, { end: () => void; walk: number }>();
let walk = 0;
const roots = new Set<Any>();
const apps = new WeakSet<object>();

const has = (of: Any, ...methods: string[]): boolean => methods.every((name) => typeof of?.[name] === "function");

/** What this walk has found. It is shared when those that are gone have left their names. */
const fresh = new Set<Any>();

/** Looks at what may be a store. */
function look(store: Any): void {
  const known = seen.get(store);
  if (known) known.walk = walk;
  else if (has(store, "getQueryCache") || has(store, "getState", "subscribe")) fresh.add(store);
}
function shareFresh(): void {
  for (const store of fresh)
    attempt(() => {
      const name = has(store, "dispatch") ? "redux" : "zustand";
      const end = has(store, "getQueryCache")
        ? adoptClient(store, null)
        : !isShared(store) && share(name, store, `State of a store of ${name}.`, null);
      if (end) seen.set(store, { end, walk });
    });
  fresh.clear();
}

/** The atoms of Jotai that components use, by their stores, each with the walk that saw it last. */
const atoms = new Map<Any, { used: Map<Any, { end: () => void; walk: number }>; changed: () => void }>();

function lookAtAtom(store: Any, atom: Any): void {
  const of = atoms.get(store) ?? { used: new Map(), changed() {} };
  if (!atoms.has(store)) {
    atoms.set(store, of);
    const get = () => {
      const used = [...of.used.keys()];
      return Object.fromEntries(used.map((atom) => [atom.debugLabel ?? `${atom}`, store.get(atom)]));
    };
    const subscribe = (changed: () => void) => {
      of.changed = changed;
      return () => {};
    };
    share("jotai", { get, subscribe } as AnyStore, "The atoms of Jotai that components use.");
  }
  const known = of.used.get(atom);
  if (known) known.walk = walk;
  else {
    of.used.set(atom, { end: store.sub(atom, () => of.changed()), walk });
    of.changed();
  }
}

/** Ends what the last walk has not seen. */
function sweep(of: Map<unknown, { end: () => void; walk: number }>): void {
  for (const [one, { end, walk: last }] of of)
    if (last !== walk) {
      of.delete(one);
      end();
    }
}

/** Looks at something of the app, which may refuse that, as a window of another origin does. */
function attempt(act: () => void): void {
  try {
    act();
  } catch (error) {
    console.debug("pagewire/dev: stores are not found:", error);
  }
}

/** Looks at the properties of a component, and at the state of its hooks. */
function lookAt(fiber: Any): void {
  const { memoizedProps: props, memoizedState: state, tag } = fiber;
  if (typeof props === "object") for (const value of [props?.store, props?.client, props?.value?.store]) look(value);
  if (tag !== 0 && tag !== 11 && tag !== 15) return; // functions alone have hooks
  for (let hook = state; hook; hook = hook.next) {
    const [first, second, third] = Array.isArray(hook.memoizedState) ? hook.memoizedState : [];
    if (has(second, "get", "set", "sub") && has(third, "read")) lookAtAtom(second, third);
    else if (typeof first === "function" && Array.isArray(second) && has(second[0], "setState")) look(second[0]);
  }
}

function walkAll(): void {
  walk++;
  for (const { stateNode } of roots) {
    const top = stateNode?.current;
    for (let fiber = top; fiber; ) {
      attempt(() => lookAt(fiber));
      if (fiber.child) fiber = fiber.child;
      else {
        while (fiber && fiber !== top && !fiber.sibling) fiber = fiber.return;
        fiber = fiber === top ? undefined : fiber?.sibling;
      }
    }
  }
  look((globalThis as Any).__TANSTACK_QUERY_CLIENT__);
  sweep(seen);
  shareFresh();
  for (const { used } of atoms.values()) sweep(used);
}

/** Takes what a framework has left at an element that it renders into. */
function enter(element: Any): void {
  for (const key of Object.keys(element))
    if (key.startsWith("__reactContainer$") && element[key]) roots.add(element[key]);
  const app = element.__vue_app__;
  if (!app || apps.has(app)) return;
  apps.add(app);
  const { $pinia } = app.config.globalProperties;
  if ($pinia) adoptPinia($pinia);
  const { provides } = app._context;
  for (const key of Object.keys(provides))
    attempt(() => has(provides[key], "getQueryCache") && adoptClient(provides[key]));
}

/** MobX tells its observers of each change, by the name of the object: `Cart@1.items`. */
function follow(globals: Any): void {
  const stores = new Map<string, () => void>();
  const shared = new Map<string, number>();
  globals.spyListeners.push(({ object, debugObjectName, observableKind }: Any) => {
    if (!object) return;
    const [root, inner] = `${debugObjectName}`.split(/(?=[.[?])/);
    const changed = stores.get(root!);
    if (changed) return queueMicrotask(changed);
    const name = root!.replace(/@\d+$/, "");
    const count = shared.get(name) ?? 0;
    // An app may make thousands of a class: the first ones are shared.
    if (inner || observableKind !== "object" || count >= 3) return;
    shared.set(name, count + 1);
    const subscribe = (changed: () => void) => {
      stores.set(root!, changed);
      return () => stores.delete(root!);
    };
    share(name, { get: () => object, subscribe } as AnyStore, `State of MobX's ${name}.`);
  });
}

/** Calls back with a global variable, now or when a library sets it. */
function whenSet(name: string, act: (value: Any) => void): void {
  const page = globalThis as Any;
  if (page[name]) return act(page[name]);
  const set = (value: Any) => {
    Object.defineProperty(page, name, { value, writable: true, configurable: true, enumerable: true });
    if (value) act(value);
  };
  Object.defineProperty(page, name, { get: () => undefined, set, configurable: true });
}

/** An enhancer of Redux that shares each store, before those of Redux's own tools. */
function enhanceRedux(): void {
  const page = globalThis as Any;
  const theirs = page.__REDUX_DEVTOOLS_EXTENSION_COMPOSE__;
  const sharing =
    (make: Any) =>
    (...args: Any[]) => {
      const store = make(...args);
      if (!isShared(store))
        queueMicrotask(() => isShared(store) || share("redux", store, "State of a store of redux."));
      return store;
    };
  const compose =
    (...all: Any[]) =>
    (make: Any) =>
      all.reduceRight((made, enhance) => enhance(made), make);
  const ours = (...args: Any[]) => {
    if (args.length !== 1 || typeof args[0] !== "object") return (theirs ?? compose)(sharing, ...args);
    return (...all: Any[]) => (theirs ? theirs(args[0]) : compose)(sharing, ...all);
  };
  page.__REDUX_DEVTOOLS_EXTENSION_COMPOSE__ = Object.assign(ours, theirs);
}

/** Begins. What a store or a framework throws here is nothing that the app is to know. */
export function findStores(): void {
  enhanceRedux();
  whenSet("__mobxGlobals", follow);
  let waiting = false;
  const later = globalThis.requestIdleCallback ?? setTimeout;
  const changed = (elements: Iterable<Node>) => {
    for (const element of elements) attempt(() => enter(element));
    if (waiting || !roots.size) return;
    waiting = true;
    later(() => {
      waiting = false;
      attempt(walkAll);
    });
  };
  new MutationObserver((records) => changed(new Set(records.map(({ target }) => target)))).observe(document, {
    childList: true,
    subtree: true,
  });
  const all = () => changed([document, ...document.querySelectorAll("*")]);
  addEventListener("load", all);
  // Hydration changes no element, and may end long after the load: looks again, ever less often.
  const again = (pause: number): void => {
    all();
    if (pause < 60_000) setTimeout(again, pause, 2 * pause);
  };
  again(250);
}
