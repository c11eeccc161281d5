/**
 * dist/extension/page.js: the page layer as the extension adds it to each document, in the page's own world, before
 * any script of the page runs. The core is at the other end of the extension's transport; relay.ts is in between.
 *
 * Nothing is told to the extension but how much the page offers, until it begins: the page layer of a page that offers
 * nothing is silent, and one of a site that the user has not allowed sees what it would see if no agent ran. So does
 * one that is allowed, until an agent comes: a core elsewhere shows itself by what it asks alone.
 *
 * The relay hands one end of a MessageChannel over when both have run, in one synchronous event before the page's first
 * script. That end is never given again, and it is used by references that were taken then, so that no script of the
 * page gets at it. (A nonce would have to travel with every message, and be compared; a port that nobody else has is
 * its own.)
 */
import {
  apply,
  defineProperty,
  exec,
  listen,
  messageData,
  messagePorts,
  microtask,
  parse,
  postToPort,
  SafeURL,
  startPort,
  unlisten,
} from "../page/intrinsics.ts";
import { boot } from "../page/pagewire.ts";
import { type Adopt, type Post, shared } from "../page/shared.ts";
import { nowhere, serveBy } from "./load.ts";
import { type Down, handover } from "./messages.ts";

const preventDefault = Event.prototype.preventDefault;

// Not in a document that has no origin of its own (a sandboxed frame).
if (globalThis.isSecureContext && /^https?:/.test(globalThis.origin)) {
  const before: unknown = globalThis.pagewire;
  const pagewire = boot(nowhere, {});
  if (pagewire !== before) {
    const { configure } = pagewire; // which the page may replace
    const take = (event: MessageEvent) => {
      unlisten(window, handover, take);
      const port = messagePorts(event)[0];
      if (!port) return;
      apply(preventDefault, event, []); // tells the relay that it has arrived
      run(port, (post) => configure({ __proto__: null, gateway: post } as object));
    };
    listen(window, handover, take);
    // A page's own script finds ours, and does nothing: what it says is done here.
    let adopted = false;
    const adopt: Adopt = (base, options, load) => {
      if (adopted) return;
      adopted = true;
      serveBy(load);
      const beside = (file: string) => new SafeURL(file, base).href;
      configure({
        core: beside("pagewire.core.js"),
        wasm: beside("pagewire.wasm"),
        worker: beside("pagewire.worker.js"),
        ...options,
      });
    };
    defineProperty(pagewire, "adopt", { __proto__: null, value: adopt } as PropertyDescriptor);
  }
}

/** `begin` has the page layer begin a link, whose frames it posts. */
function run(port: MessagePort, begin: (post: Post) => void): void {
  /** Those of the link that is live. */
  let post: Post | undefined;
  const end = () => {
    const ended = post;
    post = undefined;
    ended?.hear?.(null);
  };
  listen(port, "message", (event: MessageEvent) => {
    const said = messageData(event) as Down;
    if (said === "start") {
      end();
      postToPort(port, "start");
      const fresh: Post = (post = (frame) => void (post === fresh && postToPort(port, frame)));
      begin(fresh);
    } else if (said === null) end();
    else if (post?.hear) post.hear(parse(said));
    else if (post) postToPort(port, ""); // the page layer has given it up
  });
  startPort(port);

  // How much the page offers: its resources, and the tools of whatever model context it has. Told once per turn.
  let tools = 0;
  let told = 0;
  let due = false;
  const tell = () => {
    due = false;
    const offers = shared.entries.size + tools;
    if (offers !== told) postToPort(port, (told = offers));
  };
  const soon = () => {
    if (due) return;
    due = true;
    microtask(tell);
  };
  const context = document.modelContext as
    | (EventTarget & { getTools?(): Promise<readonly { readonly name: string }[]> })
    | undefined;
  const ours = /^resources_(list|read|wait)$/;
  const count = async () => {
    try {
      let n = 0;
      const all = await context!.getTools!();
      for (let i = 0; i < all.length; i++) if (!exec(ours, all[i]!.name)) n++;
      tools = n;
      soon();
    } catch {} // a context without tools, or a page that has replaced it
  };
  const peopled = shared.peopled;
  shared.peopled = (any) => {
    peopled(any);
    soon();
  };
  try {
    if (context) listen(context, "toolchange", () => void count());
  } catch {} // no EventTarget
}
