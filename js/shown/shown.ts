/**
 * What any page shows, as lines of text that agents read and follow, for pages that know nothing of Pagewire. It runs in
 * an isolated world, a content script's or one by the Chrome DevTools Protocol, in which a page sees and changes none
 * of it. It only reads: it never clicks, types, scrolls or writes. Nothing runs before somebody reads or watches, and
 * after the last watch nothing but an observer of `type`, which remembers passwords that a button shows.
 *
 *   const page = shown(document);
 *   const whole = page.view(() => port.postMessage("changed"));
 *   await whole.read();
 *   whole.watch(true);
 */
import { type Clock, Follower, partOf, type Watch } from "./follow.ts";

/** The whole page, or a part of it, as one resource. */
export interface View {
  /**
   * The text now: at most 200,000 characters, after the first `from`. If there is more, the last line says where to
   * read on. With `links`, the addresses of links are in it. Rejects if the part is not in the page.
   */
  read(options?: { from?: number; links?: boolean }): Promise<string>;
  /** Whether changes are told: those since the last read, or from now on if nothing was read. */
  watch(on: boolean): void;
}

export interface Shown {
  /**
   * `changed` is called when a watched text is another one, at most twice a second: for the whole page when more has
   * changed than clocks and the like, otherwise once a minute; for a part always. `part` finds its element, now.
   */
  view(changed: () => void, part?: () => Element | undefined): View;
  /** Ends all watches, and the observer of `type`. */
  stop(): void;
}

/**
 * Begins with a document. The clock has the time between looks. Browsers slow the timers of hidden tabs down to one a
 * minute: who carries the text can do better, and passes its own.
 */
export function shown(document: Document, clock: Clock = browserClock): Shown {
  const follower = new Follower(document, clock);
  return {
    view(changed, part) {
      const watch: Watch = { changed, part };
      return {
        async read(options) {
          if (partOf(watch) === null) throw new Error("the part is not in the page now");
          return follower.read(watch, options);
        },
        watch: (on) => void (on ? follower.watch(watch) : follower.unwatch(watch)),
      };
    },
    stop: () => follower.stop(),
  };
}

const browserClock: Clock = {
  now: () => performance.now(),
  wait: (ms) => new Promise((done) => setTimeout(done, ms)),
};
