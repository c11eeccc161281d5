/**
 * What any page shows, as lines of text that agents read and follow, for pages that know nothing of
 * Pagewire. It runs in an isolated world, a content script's or one by the Chrome DevTools
 * Protocol, in which a page sees and changes none of it. It only reads: it never clicks, types,
 * scrolls or writes. Nothing runs before somebody reads or watches, and after the last watch
 * nothing but an observer of `type`, which remembers passwords that a button shows.
 *
 *   const page = shown(document);
 *   const whole = page.view(() => port.postMessage("changed"));
 *   await whole.read();
 *   whole.watch(true);
 */
import { type Clock, Follower, type Watch } from "./follow.ts";
import type { Part } from "./part.ts";

/** The whole page, or a part of it, as one resource. */
export interface View {
  /**
   * The text now: at most 200,000 characters, after the first `from`. If there is more, the last
   * line says where to read on. With `links`, the addresses of links are in it. Undefined if the
   * part is not in the page now.
   */
  read(options?: { from?: number; links?: boolean }): Promise<string | undefined>;
  /** Whether changes are told: those since the last read, or from now on if nothing was read. */
  watch(on: boolean): void;
}

export interface Shown {
  /**
   * `changed` is called when a watched text is another one, at most twice a second: for the whole
   * page when more has changed than clocks and the like, otherwise once a minute; for a part
   * always. Throws if one of the part's selectors is none.
   */
  view(changed: () => void, part?: Part): View;
  /** Ends all watches, and the observer of `type`. */
  stop(): void;
}

/**
 * Begins with a document. The clock has the time between looks. It is who carries the text that has
 * it, since browsers slow the timers of hidden tabs down to one a minute.
 */
export function shown(document: Document, clock: Clock): Shown {
  const followers = [new Follower(document, clock)];
  return {
    view(changed, part) {
      // Tried where nothing is: the document may have no element yet.
      const attempt = (selector: string) => new DocumentFragment().querySelector(selector);
      for (const { css, place } of part?.find ?? []) attempt(css ?? place ?? "*");
      const except = part?.except?.join();
      if (except) attempt(except);
      // What is left out is left out of all pieces that a follower keeps.
      const follower = except ? new Follower(document, clock, except) : followers[0]!;
      if (except) followers.push(follower);
      const watch: Watch = { changed, part };
      return {
        read: (options) => follower.read(watch, options),
        watch: (on) => void (on ? follower.watch(watch) : follower.unwatch(watch)),
      };
    },
    stop: () => {
      for (const follower of followers) follower.stop();
    },
  };
}
