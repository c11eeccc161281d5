/**
 * Whether a call of the core came late: the page's side of link.Lateness in bridge/link/late.go,
 * which relays use.
 *
 * The two clocks are not set by each other. The page keeps when it has sent something, and the
 * core's time in the answer: so much time has passed since then at most, on both sides.
 */

/** The age above which a call is late, in ms. */
export const lateAfter = 250;
/** The part by which two clocks may differ more with time. */
const drift = 10_000;

// The page may patch its own.
const { performance, Date } = globalThis;
export const sinceStart = performance.now.bind(performance);
const sinceEpoch = Date.now;

export function lateness() {
  /** The first clock stands still while the machine sleeps. The second jumps when it is set. */
  const now = () => [sinceStart(), sinceEpoch()] as const;
  let base: ReturnType<typeof now> | undefined;
  let core = 0;
  return {
    now,
    /** Notes the core's time `at`, in its answer to what was sent at `sent`. */
    sample(sent: ReturnType<typeof now>, at: number) {
      base = sent;
      core = at;
    },
    /**
     * Whether a call may be older than `most`, that the core has sent at its time `sent`: 0 is late
     * always.
     */
    late(sent: number | undefined, most = lateAfter): boolean {
      // The core is older, and does not know `starting`.
      if (!base || sent === undefined) return false;
      for (let i = 0; i < 2; i++) {
        const passed = now()[i]! - base[i]!;
        const age = passed + passed / drift - (sent - core);
        if (!sent || age > most || age < -lateAfter / 2) return true;
      }
      return false;
    },
    /** Whether the core tells its time, and so takes `started` and `starting`. */
    known: () => !!base,
  };
}

/**
 * What waits for its task. One port serves all, made here: to make one takes longer than the task,
 * and much stack.
 */
const jobs = { __proto__: null } as unknown as Record<number, () => void>;
let first = 0;
let next = 0;
/** Node waits for a port only while it has a `ref`. */
type Port = MessagePort & { ref?(): void; unref?(): void };
const { MessageChannel, setTimeout } = globalThis;
/** undefined in jsdom, which has no channels. */
const channel = MessageChannel && new MessageChannel();
const ours: Port | undefined = channel?.port1;
if (ours)
  ours.onmessage = () => {
    const job = jobs[first]!;
    delete jobs[first++];
    if (first === next) ours.unref?.();
    job();
  };
ours?.unref?.();

/**
 * Calls f in a later task, behind the messages that wait now. Throws, and does nothing, if the
 * stack is full.
 */
export function later(f: () => void): void {
  if (!channel) return void setTimeout(f);
  // First: with a full stack it throws, and a job without a message would run in place of the next.
  channel.port2.postMessage(0);
  jobs[next++] = f;
  ours?.ref?.();
}
