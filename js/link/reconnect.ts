/**
 * The one reconnect loop, for each connection that can be lost: to the page's gateway, to the
 * extension's worker, native host and gateway, and of the inspector's feed.
 *
 * After a connection that lasted, the first attempt is made at once, or within a time; each further
 * one waits twice as long as the one before, up to a bound. The loop does not connect itself: it
 * calls `connect`.
 */

// The page may patch its own.
const { setTimeout, clearTimeout, Date } = globalThis;
const { min, random } = Math;

/** The first pause, in ms: the next daemon listens after 10 ms, if the machine is not busy. */
const firstPause = 25;
/**
 * A shorter connection, in ms, counts as a failure: otherwise connections that break at once would
 * have no pauses.
 */
const minLife = 2_000;

/**
 * A pause, a quarter more or less, so that the clients of a gateway that has ended do not all come
 * back at once.
 */
export const backoff = (first: number, failures: number, longest: number): number =>
  min(longest, first * 2 ** failures) * (0.75 + random() / 2);

/** `longest` is the longest pause, in ms, after so many failures in a row. */
export function reconnect(connect: () => void, longest: (failures: number) => number) {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let failures = 0;
  let opened = 0;

  const stop = (): void => clearTimeout(timer);
  return {
    stop,
    opened(): void {
      opened = Date.now();
    },
    /**
     * Connects again, after `pause` ms if that is given. Otherwise, the first attempt comes
     * `within` so many ms, for clients that must not all come at once: their first pause is a
     * twentieth of that. Returns the number of failures in a row.
     */
    again(pause?: number, within = 0): number {
      stop();
      if (opened && Date.now() - opened > minLife) failures = 0;
      opened = 0;
      const first = !failures++;
      pause ??= first ? random() * within : backoff(within / 20 || firstPause, failures - 2, longest(failures));
      // Without a timer, since timers of a hidden page are late by up to a second.
      if (pause) timer = setTimeout(connect, pause);
      else connect();
      return failures;
    },
  };
}
