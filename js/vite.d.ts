/** Options of the Vite plugin. */
export interface PagewirePluginOptions {
  /** The URL of the gateway that pages connect to. Default: ws://127.0.0.1:7433, where `pagewire serve` listens. */
  gateway?: string | undefined;
}

/**
 * The Vite plugin: while the app is developed, agents see each store that it makes (Redux, Zustand, Pinia, Svelte),
 * TanStack Query's cache, the route, and errors of the dev server. A build has nothing of it. Vite 5 or newer.
 */
export default function pagewire(options?: PagewirePluginOptions): { name: string; apply: "serve"; enforce: "pre" };
