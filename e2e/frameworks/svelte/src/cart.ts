import { writable } from "svelte/store";

export const cart = writable({ items: ["tea"] });
export const add = () => cart.update(({ items }) => ({ items: [...items, "milk"] }));
