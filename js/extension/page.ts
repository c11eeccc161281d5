/**
 * dist/extension/page.js: the page layer as the extension adds it to each document, in the page's
 * own world, before any script of the page runs. The core is at the other end of the extension's
 * transport; relay.ts is in between.
 *
 * Until the extension begins a link it learns only how many things the page offers, and the names
 * of the first ones for the popup, and nothing from a page that offers none. A page cannot tell whether its site is allowed: it notices an agent
 * only by the agent's reads and calls.
 *
 * The relay runs after this script, and hands over one end of a MessageChannel, once, in a
 * synchronous event before the page's first script. The port is used by references that were taken
 * then, so that no script of the page gets at it. (A nonce instead of the port would travel with
 * every message.)
 */
import {
  apply,
  defineProperty,
  descriptorOf,
  exec,
  listen,
  messageData,
  messagePorts,
  microtask,
  parse,
  postToPort,
  SafeURL,
  slice,
  startPort,
  unlisten,
} from "../page/early/intrinsics.ts";
import { boot } from "../page/early/pagewire.ts";
import { type Adopt, type Post, shared } from "../page/early/shared.ts";
import { nowhere, setLoader } from "./load.ts";
import { type Down, handover, longestName, mostNames, start } from "./messages.ts";

const { preventDefault } = Event.prototype;
const { startsWith } = String.prototype;
const line = (name: string) => slice(name, 0, longestName) + "\n";

// Not in a document that has no origin of its own (a sandboxed frame).
if (globalThis.isSecureContext && /^https?:/.test(globalThis.origin)) {
  const before: unknown = globalThis.pagewire;
  const pagewire = boot(nowhere, {});
  if (pagewire !== before) {
    const { configure } = pagewire; // now, since the page may replace it
    const onhandover = (event: MessageEvent) => {
      unlisten(window, handover, onhandover);
      const port = messagePorts(event)[0];
      if (!port) return;
      apply(preventDefault, event, []); // tells the relay that it has arrived
      run(port, (post) => configure({ __proto__: null, gateway: post } as object));
    };
    listen(window, handover, onhandover);
    // The page's own Pagewire script finds this page layer, and gives it its options and its
    // loader.
    let adopted = false;
    const adopt: Adopt = (base, options, load) => {
      if (adopted) return;
      adopted = true;
      setLoader(load);
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

/**
 * Serves the relay's port. `begin` makes the page layer begin a link, which posts its frames by the
 * given function.
 */
function run(port: MessagePort, begin: (post: Post) => void): void {
  /** The function of the live link. */
  let post: Post | undefined;
  const endLink = () => {
    const ended = post;
    post = undefined;
    ended?.receive?.(null);
  };
  listen(port, "message", (event: MessageEvent) => {
    const message = messageData(event) as Down;
    if (message !== null && apply(startsWith, message, [start])) {
      endLink();
      postToPort(port, message);
      const fresh: Post = (post = (frame) => void (post === fresh && postToPort(port, frame)));
      post.slow = true;
      begin(fresh);
    } else if (message === null) endLink();
    else if (post?.receive) post.receive(parse(message));
    else if (post) postToPort(port, ""); // the page layer has ended the link
  });
  startPort(port);

  // Tells the relay once per turn the number of the page's resources and of the tools of its model
  // context, and the first names.
  let tools = 0;
  let toolNames = "";
  let told = "0";
  let due = false;
  const tell = () => {
    due = false;
    const offers = shared.entries.size + tools;
    let names = "";
    let left = mostNames;
    shared.entries.forEach(({ descriptor }) => {
      if (left-- <= 0) return;
      const resource = parse(descriptor);
      names += line(descriptorOf(resource, "title")?.value || resource.name);
    });
    names += toolNames;
    if (told !== (told = offers + names)) postToPort(port, [offers, names]);
  };
  const tellSoon = () => {
    if (due) return;
    due = true;
    microtask(tell);
  };
  const context = document.modelContext as
    | (EventTarget & { getTools?(): Promise<readonly { readonly name: string }[]> })
    | undefined;
  const ourTools = /^resources_(list|read|wait)$/;
  const count = async () => {
    try {
      let n = 0;
      let names = "";
      const all = await context!.getTools!();
      for (let i = 0; i < all.length; i++)
        if (!exec(ourTools, all[i]!.name) && n++ < mostNames) names += line(all[i]!.name);
      tools = n;
      toolNames = names;
      tellSoon();
    } catch {} // a context without tools, or a page that has replaced it
  };
  const { populated } = shared;
  shared.populated = (any) => {
    populated?.(any);
    tellSoon();
  };
  try {
    if (context) listen(context, "toolchange", () => void count());
  } catch {} // no EventTarget
}
