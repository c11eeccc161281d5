/// <reference path="./pagewire.d.ts" />
import type { AnyStore } from "./store.js";

/**
 * Shares a store that Pagewire does not find by itself, at `/state/NAME`. Returns a function that ends it. In a build
 * for production, and on a server, it does nothing.
 */
export function share(name: string, store: AnyStore, description?: string): () => void;
