// Stores of each library, with its own types. It is compiled, never run.
import { signal } from "@preact/signals-core";
import { atom as jotaiAtom, getDefaultStore } from "jotai/vanilla";
import { observable, reaction, toJS } from "mobx";
import { atom, computed, map } from "nanostores";
import { createStore as createRedux } from "redux";
import { BehaviorSubject, from } from "rxjs";
import { derived, writable } from "svelte/store";
import { reactive, watch } from "vue";
import { z } from "zod";
import { createStore as createZustand } from "zustand/vanilla";
import { type StateOf, type StoreDescriptor, shareStore, tool } from "pagewire/store";
import "pagewire/elements";

interface Cart {
  items: string[];
}
const empty: Cart = { items: [] };
const cart: StoreDescriptor<Cart> = {
  uri: "/state/cart",
  name: "Cart",
  select: ({ items }) => items.length,
  mimeType: undefined,
};

const redux = createRedux((state: Cart = empty) => state);
const zustand = createZustand<Cart>(() => empty);
const svelte = writable(empty);
const jotai = jotaiAtom(empty);
const vue = reactive(empty);
const mobx = observable(empty);

for (const stop of [
  shareStore(redux, cart, { signal: AbortSignal.timeout(1) }),
  shareStore(zustand, cart),
  shareStore(svelte, cart),
  shareStore(
    derived(svelte, ({ items }) => items.length),
    { uri: "/state/n", name: "n", select: (n) => n.toFixed() },
  ),
  shareStore(atom(empty), cart),
  shareStore(map(empty), cart),
  shareStore(
    computed(atom(empty), ({ items }) => items),
    { uri: "/state/items", name: "Items", select: (items) => items.map((item) => item.length) },
  ),
  shareStore(new BehaviorSubject(empty), cart),
  shareStore(from([empty]), cart),
  shareStore(signal(empty), cart),
  shareStore({ get: () => vue, subscribe: (changed) => watch(vue, changed) }, cart),
  shareStore({ get: () => mobx, subscribe: (changed) => reaction(() => toJS(mobx), changed) }, cart),
  shareStore(
    {
      get: () => getDefaultStore().get(jotai),
      subscribe: (changed) => getDefaultStore().sub(jotai, changed),
    },
    cart,
  ),
])
  stop();

shareStore(redux, { ...cart, schema: z.number() });
navigator.modelContext.registerTool(
  tool(z.object({ sku: z.string() }), { name: "add", description: "Adds", execute: ({ sku }) => sku.toUpperCase() }),
);
// @ts-expect-error: the input has no such member
tool(z.object({ sku: z.string() }), { name: "add", description: "Adds", execute: ({ count }) => count });
// @ts-expect-error: no schema
shareStore(redux, { ...cart, schema: {} });
export const state: StateOf<typeof redux> = empty;
// The page API's types come with it.
navigator.modelContext.notifyResourceUpdated("/state");
// @ts-expect-error: no store
shareStore(empty, cart);
// @ts-expect-error: no name
shareStore(redux, { uri: "/state" });
// @ts-expect-error: the state has no such member
shareStore(redux, { ...cart, select: ({ nothing }) => nothing });
// @ts-expect-error: the value of the store is read
shareStore(redux, { ...cart, read: () => "" });
