/** Options of `withPagewire`. */
export interface PagewireNextOptions {
  /** The URL of the gateway that pages connect to. Default: ws://127.0.0.1:7433, where `pagewire serve` listens. */
  gateway?: string | undefined;
}

/**
 * Wraps the configuration of Next.js 16.4 or newer, an object or a function. The development server then puts
 * `pagewire/dev` into each page, with Turbopack and with webpack. A build is left as it is.
 */
export function withPagewire<Config>(config?: Config, options?: PagewireNextOptions): Config;
export default withPagewire;
