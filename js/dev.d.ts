/// <reference path="./pagewire.d.ts" />
import type { AnyStore } from "./store.js";

/** Shares a store at `/state/NAME` until the returned function is called. Does nothing in production and on a server. */
export function share(name: string, store: AnyStore, description?: string): () => void;
