export interface PagewireNextOptions {
  /** Default: ws://127.0.0.1:7433. */
  gateway?: string | undefined;
}

/**
 * Wraps the configuration of Next.js 16.4 or newer, an object or a function: in development, each page gets
 * `pagewire/dev`. A build is left as it is.
 */
export function withPagewire<Config>(config?: Config, options?: PagewireNextOptions): Config;
export default withPagewire;
