import { writable } from "svelte/store";

export const cart = writable({ items: ["tea"] });
