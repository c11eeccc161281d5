/**
 * The calls of resources_wait: each waits until a resource has changed, its time is over, or it is
 * aborted.
 */
import { listen, microtask, SafeMap, SafePromise, unlisten } from "../common/intrinsics.ts";
import type { Changes, Revisions } from "../resources/revisions.ts";

const { setTimeout, clearTimeout } = globalThis;

export function resourceWaits(revisions: Revisions) {
  /** The calls that wait: each checks whether one of its resources has changed. */
  const waiting = new SafeMap<number, () => void>();
  let last = 0;
  /**
   * Whether they are due to check at the end of this turn: all changes within a turn make one
   * answer.
   */
  let due = false;

  const check = () => {
    due = false;
    waiting.forEach((each) => each());
  };

  return {
    check,
    checkSoon(): void {
      if (due || !waiting.size) return;
      due = true;
      microtask(check);
    },
    /**
     * Waits for a change after the revision `from`: of `keys` or, if that is empty, of any key or
     * the list.
     */
    async wait(keys: readonly string[], from: number, ms: number, signal: AbortSignal): Promise<Changes> {
      const changed = () => revisions.since(from, keys);
      if (!changed())
        await new SafePromise<void>((done) => {
          const id = ++last;
          const end = () => {
            waiting.delete(id);
            clearTimeout(timer);
            unlisten(signal, "abort", end);
            done();
          };
          const timer = setTimeout(end, ms);
          waiting.set(id, () => changed() && end());
          listen(signal, "abort", end);
        });
      return changed() ?? { updated: [] };
    },
  };
}
