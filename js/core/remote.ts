/**
 * A core in a worker, seen from the page: the link as a pair of postMessage queues. Each message is
 * an array, the name of a call and its arguments. worker.ts is the other side.
 */
import type { CoreOptions, PortCore, PortSource } from "../link/link.ts";
import { later } from "../link/lateness.ts";

/** A worker's first message, with the reason if it did not start, otherwise "". */
export type Started = ["started", string];
type Calls = Omit<PortCore, "carries">;
export type ToCore = { [K in keyof Calls]: [K, ...Parameters<Calls[K]>] }[keyof Calls];
export type ToPage = { [K in keyof PortSource]: [K, ...Parameters<PortSource[K]>] }[keyof PortSource];

/** All calls except `stop`. */
const names: Exclude<keyof Calls, "stop">[] = [
  "register",
  "unregister",
  "touch",
  "setTools",
  "starting",
  "open",
  "receive",
  "writable",
  "close",
  "complete",
];

const hint = "Content-Security-Policy: allow 'wasm-unsafe-eval' in script-src";

/** Starts a core in the worker file. `cause` is the error with which it failed on the page. */
export function remote(page: PortSource, options: CoreOptions, cause: unknown): Promise<PortCore> {
  return new Promise((resolve, reject) => {
    const refuse = (why: string): void => {
      const message = `pagewire: this page's CSP forbids wasm, and the worker ${options.worker} ${why}. Either serve the page with ${hint}, or serve the worker file from the page's origin with that`;
      reject(new Error(message, { cause }));
    };
    let worker: Worker;
    try {
      worker = new Worker(trusted(options.worker) as string, { name: "pagewire" });
    } catch (why) {
      // For a policy that the page does not list, Chromium's error names the policy, but no remedy.
      refuse(`could not be started (${why}; a page with Trusted Types must allow it with: trusted-types pagewire)`);
      return;
    }
    worker.onerror = (event) => {
      event.preventDefault();
      refuse("could not be loaded");
      worker.terminate();
      page.dead("the core's worker failed");
    };
    worker.onmessage = ({ data }: MessageEvent<Started | ToPage>) => {
      if (data[0] === "started") {
        if (data[1]) {
          worker.terminate();
          refuse(`failed: ${data[1]}`);
        } else resolve(core as unknown as PortCore);
        return;
      }
      const [name, ...args] = data;
      if (name === "start") return start(args[0] as number);
      (page[name] as (...args: unknown[]) => void)(...args);
      if (name === "dead") worker.terminate();
    };
    const core = {} as Record<string, (...args: unknown[]) => void>;
    for (const name of names)
      core[name] = (...args) => {
        if (name === "close" || (name === "receive" && `${args[1]}`.includes("notifications/cancelled"))) withdrawals++;
        if (name === "starting") {
          const { rounds = 0 } = asked[args[0] as number] ?? {};
          asked[args[0] as number] = { withdrawals, rounds: rounds + 1 };
        }
        worker.postMessage([name, ...args]);
      };
    core.stop = () => worker.terminate();
    /** How many messages to the worker may have withdrawn a call, now and when it was asked. */
    let withdrawals = 0;
    const asked: Record<number, { withdrawals: number; rounds: number }> = {};
    // The page waits, since the message that withdraws the call may wait at the page: edge.ts. Then
    // the worker's answer does not cover it, and the worker is asked again: twice, since agents may
    // withdraw other calls all the time.
    const start = (call: number): void =>
      later(() =>
        later(() => {
          const last = asked[call];
          if (last && last.withdrawals !== withdrawals && last.rounds < 3) return core.starting!(call);
          delete asked[call];
          page.start(call);
        }),
      );
    worker.postMessage(options);
  });
}

/** Names of Trusted Types that TypeScript's DOM library does not have. */
interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { createScriptURL(url: string): string },
  ): { createScriptURL(url: string): unknown };
}

let policy: ReturnType<TrustedTypes["createPolicy"]> | undefined;

/**
 * The worker's URL, as a TrustedScriptURL if the page has Trusted Types: then it must allow the
 * policy "pagewire".
 */
function trusted(url: string): unknown {
  const types = (globalThis as { trustedTypes?: TrustedTypes }).trustedTypes;
  policy ??= types?.createPolicy("pagewire", { createScriptURL: (u) => u });
  return policy ? policy.createScriptURL(url) : url;
}
