export interface PagewirePluginOptions {
  /** Default: ws://127.0.0.1:7433. */
  gateway?: string | undefined;
}

/**
 * For Vite 5 or newer. In development it puts `pagewire/dev` into the page, and agents see the app's stores. A build
 * contains nothing of it, and tests of Vitest run without it.
 */
export default function pagewire(options?: PagewirePluginOptions): {
  name: string;
  apply: (config: object, env: { command: string }) => boolean;
  enforce: "pre";
};
