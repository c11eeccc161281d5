/** Options of the Vite plugin. */
export interface PagewirePluginOptions {
  /** The URL of the gateway that pages connect to. Default: ws://127.0.0.1:7433, where `pagewire serve` listens. */
  gateway?: string | undefined;
}

/**
 * The Vite plugin, for Vite 5 or newer. In development it puts `pagewire/dev` into the page, and agents see each store
 * that the app makes (Redux, Zustand, Pinia, Svelte, signals). A build contains nothing of it.
 */
export default function pagewire(options?: PagewirePluginOptions): { name: string; apply: "serve"; enforce: "pre" };
