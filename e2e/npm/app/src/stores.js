/**
 * A store of each library that pagewire/store knows, or is told of by two functions; each holds ["tea"], and `add` adds
 * to it as its users do. `stores.share(name)` offers one, until what it returns is called.
 */
import { signal } from "@preact/signals-core";
import { atom as jotaiAtom, getDefaultStore } from "jotai";
import { observable, reaction, runInAction, toJS } from "mobx";
import { atom } from "nanostores";
import { createStore } from "redux";
import { BehaviorSubject } from "rxjs";
import { writable } from "svelte/store";
import { ref, watch } from "vue";
import { create } from "zustand";
import { shareStore } from "pagewire/store";
import { add, runes } from "./runes.svelte.js";

const redux = createStore((items = ["tea"], { item }) => (item ? [...items, item] : items));
const useZustand = create(() => ({ items: ["tea"] }));
const svelte = writable(["tea"]);
const nano = atom(["tea"]);
const subject = new BehaviorSubject(["tea"]);
const preact = signal(["tea"]);
const vue = ref(["tea"]);
const mobx = observable(["tea"]);
const items = jotaiAtom(["tea"]);
const jotai = getDefaultStore();

const all = {
  redux: [redux, (item) => redux.dispatch({ type: "add", item })],
  zustand: [useZustand, (item) => useZustand.setState(({ items }) => ({ items: [...items, item] }))],
  svelte: [svelte, (item) => svelte.update((items) => [...items, item])],
  runes: [runes, add],
  nanostores: [nano, (item) => nano.set([...nano.get(), item])],
  rxjs: [subject, (item) => subject.next([...subject.value, item])],
  signals: [preact, (item) => (preact.value = [...preact.value, item])],
  vue: [
    { get: () => vue.value, subscribe: (changed) => watch(vue, changed, { deep: true }) },
    (item) => vue.value.push(item),
  ],
  mobx: [
    { get: () => mobx, subscribe: (changed) => reaction(() => toJS(mobx), changed) },
    (item) => runInAction(() => mobx.push(item)),
  ],
  jotai: [
    { get: () => jotai.get(items), subscribe: (changed) => jotai.sub(items, changed) },
    (item) => jotai.set(items, (before) => [...before, item]),
  ],
};

globalThis.stores = {
  names: Object.keys(all),
  share: (name) => shareStore(all[name][0], { uri: `/store/${name}`, name, select: (state) => state.items ?? state }),
  add: (name, item) => all[name][1](item),
  /** Loads what offers elements by attributes. */
  elements: () => import("pagewire/elements"),
};
