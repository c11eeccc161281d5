// Svelte's runes, as a store.
import { toStore } from "svelte/store";

const cart = $state({ items: ["tea"] });

export const runes = toStore(() => $state.snapshot(cart));
export const add = (item) => cart.items.push(item);
