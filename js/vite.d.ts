/** Options of the Vite plugin. */
export interface PagewirePluginOptions {
  /** The URL of the gateway that pages connect to. Default: ws://127.0.0.1:7433, where `pagewire serve` listens. */
  gateway?: string | undefined;
}

/**
 * The Vite plugin, for Vite 5 or newer. In development, agents see each store that the app makes (Redux, Zustand,
 * Pinia, Svelte), TanStack Query's cache, the route, and the errors of the dev server. A build contains nothing of it.
 */
export default function pagewire(options?: PagewirePluginOptions): { name: string; apply: "serve"; enforce: "pre" };
