/**
 * The `pagewire` object outside of a page: on a server that renders, in a worker, in a test whose
 * DOM is too small for the page layer. Importing it must do no harm there. Its connect() says what
 * is missing.
 */
import type { Pagewire } from "../../pagewire.d.mts";

/** `cause` is the error with which the page layer failed, if it was tried. */
export const absent = (cause?: unknown): Pagewire => ({
  connect() {
    throw new Error(
      `pagewire: there is no page here (a server, a worker or a test${cause ? `: ${cause}` : ""}): call connect() only in a browser's page`,
      { cause },
    );
  },
  configure() {},
  uninstall() {},
  stats: () => ({
    core: "none",
    ports: 0,
    resources: 0,
    reading: 0,
    watched: 0,
    reads: 0,
    notified: 0,
    unknown: 0,
    deaths: 0,
  }),
  addEventListener() {},
  removeEventListener() {},
  dispatchEvent: () => true,
});
