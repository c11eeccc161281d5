// Stores of each library, with its own types. It is compiled, never run.
import { signal } from "@preact/signals-core";
import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import { atom as jotaiAtom, getDefaultStore } from "jotai/vanilla";
import { observable, reaction, toJS } from "mobx";
import { atom, computed, map } from "nanostores";
import { createStore as createRedux } from "redux";
import { BehaviorSubject, from } from "rxjs";
import { derived, writable } from "svelte/store";
import * as v from "valibot";
import { reactive, ref, watch } from "vue";
import { z } from "zod";
import { createStore as createZustand } from "zustand/vanilla";
import { resource, type StateOf, type StoreDescriptor, shareStore, tool } from "pagewire/store";
import { useResource as offer } from "pagewire/vue";
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
const place = { uri: "https://shop.example/state/cart", name: "Cart" } as const;
const price = v.object({ price: v.number() });
for (const each of [
  resource(z.object({ price: z.number() }), { ...place, read: () => ({ price: 1 }) }),
  resource(type({ price: "number" }), { ...place, read: async () => ({ price: 1 }) }),
  resource(price, { ...place, read: () => ({ price: 1 }) }),
  resource(toStandardJsonSchema(price), { ...place, read: () => ({ price: 1 }) }),
  // @ts-expect-error: the price is a number, by zod
  resource(z.object({ price: z.number() }), { ...place, read: () => ({ price: "1" }) }),
  // @ts-expect-error: by arktype
  resource(type({ price: "number" }), { ...place, read: () => ({ price: "1" }) }),
  // @ts-expect-error: by valibot
  resource(price, { ...place, read: () => ({ price: "1" }) }),
  // @ts-expect-error: by valibot, with its JSON Schema
  resource(toStandardJsonSchema(price), { ...place, read: () => ({ price: "1" }) }),
])
  navigator.modelContext.registerResource(each);
tool(type({ sku: "string" }), { name: "add", description: "Adds", execute: ({ sku }) => sku.toUpperCase() });
tool(price, { name: "pay", description: "Pays", execute: ({ price }) => price.toFixed() });

for (const source of [vue, ref(empty), () => empty]) offer(cart, source);
offer(() => ({ ...place, select: ({ items }) => items.length }), ref(empty));
// @ts-expect-error: the state has no such member
offer({ ...place, select: ({ nothing }) => nothing }, ref(empty));
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
