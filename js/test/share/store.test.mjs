// shareStore with unmodified libraries, at the page layer's own registry. e2e/npm_test.go tests it
// with agents and a browser.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { afterEach, beforeEach, mock, test } from "node:test";
import { signal as makeSignal } from "@preact/signals-core";
import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import { atom as jotaiAtom, createStore as createJotai } from "jotai/vanilla";
import { observable, reaction, runInAction, toJS } from "mobx";
import { atom, computed as computedAtom, map } from "nanostores";
import { createStore as createRedux } from "redux";
import { BehaviorSubject, Observable, Subject } from "rxjs";
import { derived, readable, writable } from "svelte/store";
import * as v from "valibot";
import { nextTick, reactive, ref, watch } from "vue";
import { z } from "zod";
import { subscribeWithSelector } from "zustand/middleware";
import { createStore as createZustand } from "zustand/vanilla";
import { resource, shareStore, tool } from "../../../dist/npm/store.js";
import { notify, register, shared } from "../../../dist/test/page.mjs";

const uri = "https://x.test/state/cart";
const cart = { uri: "/state/cart", name: "Cart" };
const permission = { origin: "https://x.test", active: () => true, allowed: true };
let told;

beforeEach(() => {
  told = 0;
  shared.core = { register() {}, unregister() {}, touch: () => told++ };
  globalThis.navigator ??= {}; // Node 20 has no navigator
  globalThis.location = { origin: permission.origin };
  globalThis.document = {
    modelContext: {
      // By its IDL it makes a text of the URI.
      registerResource: (resource, { signal }) =>
        register({ ...resource, uri: `${resource.uri}` }, signal, permission, ""),
      notifyResourceUpdated: (uri) => notify(uri, ""),
    },
  };
});
afterEach(() => {
  assert.equal(shared.entries.size, 0, "what was shared is withdrawn");
  delete globalThis.document;
});

const entry = () => Map.prototype.get.call(shared.entries, uri);
const read = () => entry().read(uri, {}).text;
/**
 * The number of changes that are announced to agents during `act`. Calls of one turn are merged
 * into one change.
 */
async function tells(act) {
  const before = told;
  await act();
  await nextTick();
  await Promise.resolve();
  return told - before;
}

/** A state that is changed in place, and stays the same object. */
const changed = (change) => (state) => {
  change(state);
  return state;
};

/** Each library: a store that holds ["tea"], and a function that adds something to it. */
const libraries = {
  Redux() {
    const store = createRedux((state = { items: ["tea"] }, { add }) =>
      add ? { items: [...state.items, add] } : state,
    );
    return [store, (add) => store.dispatch({ type: "add", add })];
  },
  Zustand() {
    const store = createZustand((set) => ({
      items: ["tea"],
      add: (item) => set(({ items }) => ({ items: [...items, item] })),
    }));
    return [store, (item) => store.getState().add(item)];
  },
  "a Svelte store, changed in place"() {
    const store = writable({ items: ["tea"] });
    return [store, (item) => store.update(changed((state) => state.items.push(item)))];
  },
  "a derived Svelte store"() {
    const items = writable(["tea"]);
    return [derived(items, (items) => ({ items })), (item) => items.update((items) => [...items, item])];
  },
  "nanostores: an atom"() {
    const store = atom({ items: ["tea"] });
    return [store, (item) => store.set({ items: [...store.get().items, item] })];
  },
  "nanostores: a map"() {
    const store = map({ items: ["tea"] });
    return [store, (item) => store.setKey("items", [...store.get().items, item])];
  },
  "nanostores: computed"() {
    const store = atom(["tea"]);
    return [computedAtom(store, (items) => ({ items })), (item) => store.set([...store.get(), item])];
  },
  "an RxJS BehaviorSubject"() {
    const store = new BehaviorSubject({ items: ["tea"] });
    return [store, (item) => store.next({ items: [...store.value.items, item] })];
  },
  "a signal"() {
    const store = makeSignal({ items: ["tea"] });
    return [store, (item) => (store.value = { items: [...store.value.items, item] })];
  },
  "Vue's reactive"() {
    const state = reactive({ items: ["tea"] });
    const store = { get: () => state, subscribe: (changed) => watch(state, changed) };
    return [store, (item) => state.items.push(item)];
  },
  "Vue's ref"() {
    const state = ref({ items: ["tea"] });
    const store = { get: () => state.value, subscribe: (changed) => watch(state, changed, { deep: true }) };
    return [store, (item) => state.value.items.push(item)];
  },
  MobX() {
    const state = observable({ items: ["tea"] });
    const store = { get: () => state, subscribe: (changed) => reaction(() => toJS(state), changed) };
    return [store, (item) => runInAction(() => state.items.push(item))];
  },
  Jotai() {
    const items = jotaiAtom(["tea"]);
    const jotai = createJotai();
    const state = jotaiAtom((get) => ({ items: get(items) }));
    const store = { get: () => jotai.get(state), subscribe: (changed) => jotai.sub(state, changed) };
    return [store, (item) => jotai.set(items, (before) => [...before, item])];
  },
};

for (const [library, make] of Object.entries(libraries)) {
  test(`${library}: read as it is, told of each change, and left alone at the end`, async () => {
    const [store, add] = make();
    const stop = shareStore(store, cart);
    assert.deepEqual(JSON.parse(entry().descriptor), { uri, name: "Cart", mimeType: "application/json" });
    assert.equal(read(), '{"items":["tea"]}');
    assert.equal(await tells(() => {}), 0, "nothing is told of what was there already");
    assert.equal(await tells(() => add("milk")), 1);
    assert.equal(read(), '{"items":["tea","milk"]}');
    assert.equal(await tells(() => add("eggs")), 1);
    stop();
    assert.equal(shared.entries.size, 0);
    assert.equal(await tells(() => add("late")), 0);
  });

  test(`${library}: what is selected`, async () => {
    const [store, add] = make();
    const end = new AbortController();
    shareStore(store, { ...cart, select: (state) => state.items.length }, end);
    assert.equal(read(), "1");
    assert.equal(await tells(() => add("milk")), 1);
    assert.equal(read(), "2");
    end.abort();
  });

  test(`${library}: what is selected and stays the same`, async () => {
    const [store, add] = make();
    const stop = shareStore(store, { ...cart, select: (state) => state.items[0] });
    assert.equal(read(), "tea");
    assert.equal(JSON.parse(entry().descriptor).mimeType, "text/plain");
    assert.equal(await tells(() => add("milk")), 0);
    stop();
  });
}

test("an action that changes nothing tells nothing, of an object either", async () => {
  const store = createRedux((state = { items: [] }) => state);
  const stop = shareStore(store, { ...cart, select: ({ items }) => items });
  assert.equal(await tells(() => store.dispatch({ type: "any" })), 0);
  stop();
});

test("an object that is selected and changed in place is told", async () => {
  const store = writable({ a: [1], b: 0 });
  const stop = shareStore(store, { ...cart, select: ({ a }) => a });
  assert.equal(await tells(() => store.update(changed((state) => state.a.push(2)))), 1);
  assert.equal(await tells(() => store.update((state) => ({ ...state, b: 1 }))), 0, "the state is another, a is not");
  stop();
});

test("nothing is serialised before a read", async () => {
  let made = 0;
  const state = { toJSON: () => ++made };
  const store = writable(state);
  const stop = shareStore(store, cart);
  await tells(() => store.set(state));
  assert.equal(made, 0);
  assert.equal(read(), "1");
  stop();
});

test("an observable has no value until it passes one", async () => {
  const subject = new Subject();
  const stop = shareStore(new Observable((observer) => subject.subscribe(observer)), cart);
  assert.throws(read, { message: "the store has not passed a value yet" });
  assert.equal(await tells(() => subject.next("one")), 1);
  assert.deepEqual(entry().read(), { text: "one", mimeType: "text/plain" });
  assert.equal(await tells(() => subject.next("one")), 0);
  stop();
  assert.equal(subject.observed, false);
});

test("an observable's error that the app handles is no uncaught one, and fails the read", async (t) => {
  const subject = new BehaviorSubject(1);
  const handled = mock.fn();
  subject.subscribe({ error: handled });
  const stop = shareStore(subject, cart);
  mock.timers.enable({ apis: ["setTimeout"] });
  t.after(() => mock.timers.reset());
  subject.error(new Error("offline"));
  mock.timers.tick(1); // RxJS throws what nobody handles in a timer
  assert.equal(handled.mock.callCount(), 1);
  assert.throws(read, { message: "offline" });
  stop();
});

test("a store that takes a selector before its listener gets the listener alone", async () => {
  const store = createZustand(subscribeWithSelector(() => ({ items: ["tea"] })));
  const stop = shareStore(store, cart);
  assert.equal(await tells(() => store.setState({ items: [] })), 1);
  stop();
});

test("a URI may be a URL object, and what is no URI is an error on the console", (t) => {
  const { mock: shown } = t.mock.method(console, "error", () => {});
  const stop = shareStore(atom(1), { ...cart, uri: new URL(uri) });
  assert.equal(read(), "1");
  stop();
  for (const wrong of [undefined, 5, Symbol("a")]) shareStore(atom(1), { ...cart, uri: wrong })();
  assert.equal(shown.callCount(), 3);
});

test("strings are text, what has no JSON is null, and the page may name another type", () => {
  for (const [value, text, mimeType, given] of [
    ["a,b", "a,b", "text/csv", "text/csv"],
    [undefined, "null", "application/json"],
    [null, "null", "application/json"],
    [[1], "[1]", "application/json"],
  ]) {
    const stop = shareStore(readable(value), { ...cart, mimeType: given });
    assert.deepEqual(entry().read(), { text, mimeType });
    stop();
  }
});

test("a selector that throws breaks no dispatch, and fails the read", async () => {
  const store = createRedux((state = {}, { type }) => (type === "user" ? { user: { name: "Ada" } } : { ...state }));
  const stop = shareStore(store, { ...cart, select: ({ user }) => user.name });
  assert.throws(read, TypeError);
  assert.equal(await tells(() => store.dispatch({ type: "other" })), 1, "it may be readable now");
  await tells(() => store.dispatch({ type: "user" }));
  assert.equal(read(), "Ada");
  stop();
});

const valibot = v.object({ items: v.array(v.object({ sku: v.string() })) });
/** The same schema by each library. */
const schemas = {
  zod: z.object({ items: z.array(z.object({ sku: z.string() })) }),
  arktype: type({ items: type({ sku: "string" }).array() }),
  valibot,
  "valibot with its JSON Schema": toStandardJsonSchema(valibot),
};
const skuOf = ({ contentSchema }) => contentSchema?.properties.items.items.properties.sku.type;

for (const [library, schema] of Object.entries(schemas)) {
  const known = library === "valibot" ? undefined : "string";
  test(`a schema of ${library}: what does not fit fails the read in development; its JSON Schema`, async (t) => {
    const store = atom({ items: [{ sku: "tea" }] });
    const stop = shareStore(store, { ...cart, schema });
    const told = JSON.parse(entry().descriptor);
    assert.equal(skuOf(told), known);
    assert.equal(told.mimeType, "application/json");
    const contents = async () => (await entry().read(uri, {})).text;
    assert.equal(await contents(), '{"items":[{"sku":"tea"}]}');
    store.set({ items: [{ sku: 5 }] });
    await assert.rejects(contents(), { name: "TypeError", message: /'\/state\/cart' .* at 'items\.0\.sku': / });
    t.after(() => delete process.env.NODE_ENV);
    process.env.NODE_ENV = "production";
    assert.equal(await contents(), '{"items":[{"sku":5}]}');
    stop();
  });

  test(`a resource by a schema of ${library}: JSON, checked in development`, async (t) => {
    let sku = "tea";
    const made = resource(schema, { uri, name: "Cart", read: async () => ({ items: [{ sku }] }) });
    assert.equal(skuOf(made), known);
    assert.equal(made.mimeType, "application/json");
    assert.equal(await made.read(uri, {}), '{"items":[{"sku":"tea"}]}');
    sku = 5;
    await assert.rejects(made.read(uri, {}), { name: "TypeError", message: /x\.test.* at 'items\.0\.sku': / });
    t.after(() => delete process.env.NODE_ENV);
    process.env.NODE_ENV = "production";
    assert.equal(await made.read(uri, {}), '{"items":[{"sku":5}]}');
  });
}

test("a JSON Schema and a mimeType of the page's own are kept", async () => {
  const own = { contentSchema: { title: "own" }, mimeType: "application/ld+json" };
  const made = resource(schemas.zod, { uri, name: "Cart", ...own, read: () => undefined });
  assert.deepEqual({ contentSchema: made.contentSchema, mimeType: made.mimeType }, own);
  const stop = shareStore(atom(1), { ...cart, ...own, schema: schemas.zod });
  assert.deepEqual(JSON.parse(entry().descriptor).contentSchema, own.contentSchema);
  stop();
});

test("a schema whose library has no JSON Schema of it shares the store without one", (t) => {
  const { mock: warned } = t.mock.method(console, "warn", () => {});
  const stop = shareStore(atom(new Date(0)), { ...cart, schema: z.date() });
  assert.equal("contentSchema" in JSON.parse(entry().descriptor), false);
  assert.match(warned.calls[0].arguments[0], /agents get none/);
  stop();
});

test("a tool by a schema has its JSON Schema, and executes with what fits alone", async () => {
  const execute = mock.fn(({ count }) => `${count}`);
  const add = tool(z.object({ count: z.number().default(1) }), { name: "add", description: "Adds", execute });
  assert.equal(add.inputSchema.properties.count.type, "number");
  assert.equal(await add.execute({}, {}), "1");
  await assert.rejects(add.execute({ count: "2" }, {}), { message: /the input of 'add' .* at 'count': / });
  assert.equal(execute.mock.callCount(), 1);
});

test("what is no store is refused", () => {
  for (const store of [undefined, null, 5, {}, [], Promise.resolve(), jotaiAtom(1), ref(1), observable({}), new Map()])
    assert.throws(() => shareStore(store, cart), {
      name: "TypeError",
      message: /it has no subscribe\(\); pass \{ get: /,
    });
});

test("what registerResource refuses is on the console, and the second of two takes over", async (t) => {
  const { mock: shown } = t.mock.method(console, "error", () => {});
  const said = (n) => shown.calls[n].arguments.join(" ");
  const foreign = shareStore(atom(1), { uri: "https://evil.test/", name: "n" });
  assert.match(said(0), /^pagewire: shareStore does not offer 'https:\/\/evil.test\/' to agents: Sec/);
  const first = shareStore(atom("first"), cart);
  const other = atom("second");
  const second = shareStore(other, cart);
  assert.match(said(1), /is already registered/);
  assert.equal(await tells(() => other.set("second!")), 0, "of what is not offered nothing is told");
  first();
  await Promise.resolve();
  assert.equal(read(), "second!");
  second();
  foreign();
  delete document.modelContext;
  shareStore(atom(1), cart)();
  assert.match(said(2), /needs a secure context/);
});

test("a second copy of the module takes over what the first one ends", async (t) => {
  t.mock.method(console, "error", () => {});
  const copy = createRequire(import.meta.url)("../../../dist/npm/store.cjs");
  const first = shareStore(atom("first"), cart);
  const second = copy.shareStore(atom("second"), cart);
  first();
  await Promise.resolve();
  assert.equal(read(), "second");
  second();
});

test("an aborted signal, and a server that renders", () => {
  shareStore(atom(1), cart, { signal: AbortSignal.abort() });
  assert.equal(shared.entries.size, 0);
  delete globalThis.document;
  const subscribe = mock.fn();
  shareStore({ get() {}, subscribe }, cart)();
  assert.equal(subscribe.mock.callCount(), 0);
});
