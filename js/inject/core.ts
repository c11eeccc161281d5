/**
 * The core of a page layer that a gateway has injected: it is elsewhere, and serves agents in the page, too. The
 * link's frames go by a function that the gateway has handed over; js/link/channel.ts has the rest.
 */
import { type Call, type Channel, channel } from "../link/channel.ts";
import type { CoreOptions, PortCore, PortSource, Start } from "../link/link.ts";
import { SafePromise } from "../page/intrinsics.ts";

type Post = (frame: string) => void;

/** How long a core waits for a gateway, in ms. */
const patience = 10_000;

// The page may patch its own.
const { setTimeout, Error } = globalThis;

/** The gateway's function, while there is one. */
let gateway: Post | undefined;
/** The link that is live. */
let link: Channel | undefined;
/** Those who wait for a gateway. */
let waiting: (() => void)[] = [];

/** Connects the page layer with a gateway. The result takes what that says; null says that it goes. */
export function connect(post: Post): (calls: readonly Call[] | null) => void {
  gateway = post;
  link?.hear(null); // another gateway has come
  const come = waiting;
  waiting = [];
  for (let i = 0; i < come.length; i++) come[i]!();
  return (calls) => {
    if (gateway !== post) return;
    if (!calls) gateway = undefined;
    link?.hear(calls);
  };
}

/** Starts a core, once there is a gateway. */
export const start: Start = async (page: PortSource, options: CoreOptions): Promise<PortCore> => {
  if (!gateway) {
    await new SafePromise<void>((resolve, reject) => {
      waiting[waiting.length] = resolve;
      setTimeout(() => reject(new Error("the gateway that has injected Pagewire is not connected")), patience);
    });
  }
  return (link = channel(page, gateway!, { epoch: options.epoch ?? "" }));
};
