/**
 * The documents that an extension's service worker has. The other side of a document is relay.ts, and behind that
 * page.ts.
 *
 * Which origin, tab and frame a document is the browser says, in the port's sender, and the worker puts it into the
 * first frame of the document's link; what comes over the port is data, and is passed on. A document whose origin is
 * not admitted has no link, and nothing of it is kept but how much it says it offers. What breaks the protocol, floods
 * it, or comes from somewhere else is refused: the port is closed, counted and logged, and no other document notices.
 * What is in the frames the core at the link's other end checks.
 */
import type { Document, Options } from "../extension.d.ts";
import { fromRelay, look, type Note, type ToRelay } from "./messages.ts";

/**
 * The longest first frame of a link, and the longest of any, in UTF-16 code units: bridge/link/LINK.md has them in
 * bytes.
 */
const maxHello = 64 << 10;
const maxFrame = 17 << 20;
/**
 * Messages that a document may send in a second, and at once. A page's own layer sends 1,000 updates in a second at
 * most.
 */
const rate = 5_000;
const burst = 10_000;
/** Documents that are kept, and those of one tab. */
const maxDocuments = 1024;
const maxPerTab = 128;
const maxTitle = 1024;

const strange = "a message that is none of the page layer's";

/** What a link of a document leads to. */
export interface Ends {
  /** Takes a frame of the page. */
  frame(text: string): void;
  /** The link is over, by the document's decision, or the user's: then the document is admitted no more. */
  closed(reason: string): void;
}

/** A link with a document, from the side of who has begun it. */
export interface Link {
  /** Says a frame to the page. */
  say(frame: string): void;
  /** Ends it. `closed` is not called. */
  close(): void;
  /** Refuses the document. `closed` is called. */
  expel(why: string): void;
}

/** What a document needs of those who keep it. */
interface Keeper {
  refuse(why: string, who: string): void;
  changed(): void;
  removed(document: Live): void;
  admits(origin: string): boolean | Promise<boolean>;
  /** Whether documents that are not admitted are kept. */
  attended(): boolean;
}

/** A document, without sessions: worker.ts adds those. */
export class Live implements Omit<Document, "open" | "sessions"> {
  frame = "";
  url: string;
  title = "";
  focused = 0;
  offers = 0;
  admitted = false;
  gone = false;
  private ends: Ends | undefined;
  /** How the link's other end knows the tab. */
  private name = "";
  /** Starts that the page has not confirmed. What it says before belongs to a link that is over. */
  private starts = 0;
  /** The page has said the link's first frame. */
  private greeted = false;
  private tokens = burst;
  private filled = performance.now();

  constructor(
    private readonly keeper: Keeper,
    private readonly port: chrome.runtime.Port,
    readonly id: number,
    readonly tab: number,
    readonly frameId: number,
    readonly origin: string,
  ) {
    this.url = origin + "/";
  }

  /** Whether there is a link. */
  get linked() {
    return this.ends !== undefined;
  }

  private say(message: ToRelay): void {
    if (this.gone) return;
    try {
      this.port.postMessage(message);
    } catch {
      this.remove(); // the other end has gone, and we are about to hear
    }
  }

  keepAlive(): void {
    this.say("alive");
  }

  /** Takes what the port brings. */
  hear(message: unknown): void {
    if (this.gone) return;
    const now = performance.now();
    this.tokens = Math.min(burst, this.tokens + ((now - this.filled) / 1000) * rate) - 1;
    this.filled = now;
    if (this.tokens < 0) return this.expel(`more than ${rate} messages a second`);
    if (typeof message !== "string") return this.note(message);
    if (message.length > maxFrame) return this.expel("a message is too long");
    if (message === "start") {
      if (--this.starts < 0) this.expel(strange);
      return;
    }
    const { ends } = this;
    if (!ends || this.starts) return; // of a link that is over
    if (!message) return this.halt("the page has ended the link");
    if (!this.greeted) return this.greet(ends, message);
    ends.frame(message);
  }

  private note(message: unknown): void {
    if (typeof message !== "object" || message === null) return this.expel("a message that is none of the relay's");
    const { title: before, focused: then } = this;
    const { offers, frame, url, title, focused } = message as Note;
    if (Number.isSafeInteger(offers) && offers! >= 0) this.offers = offers!;
    if (typeof frame === "string" && /^(\d{1,4}(\.\d{1,4}){0,7})?$/.test(frame)) this.frame = frame;
    if (typeof url === "string" && url.length <= 8192 && url.startsWith(this.origin + "/")) this.url = url;
    if (typeof title === "string") this.title = title.slice(0, maxTitle);
    if (typeof focused === "number" && focused > 0) this.focused = Math.min(Math.floor(focused), Date.now());
    if (this.greeted && (this.title !== before || this.focused !== then))
      this.ends?.frame(JSON.stringify([["note", { title: this.title, focused: this.focused }]]));
    this.keeper.changed();
  }

  /**
   * Passes the link's first frame on: of what it says of the page the epoch is taken, and all else is what the browser
   * says.
   */
  private greet(ends: Ends, frame: string): void {
    let stamped: string;
    try {
      if (frame.length > maxHello) throw new RangeError("too long");
      const calls = JSON.parse(frame);
      const [call, version, build, { epoch }] = calls[0];
      if (call !== "hello" || calls.length !== 1 || typeof epoch !== "string") throw new TypeError("no hello");
      const { frame: place, title, url, origin, focused, name: tab } = this;
      const about = { epoch, tab, frame: place, title, url, origin, focused };
      stamped = JSON.stringify([["hello", version, build, about]]);
    } catch {
      return this.expel(strange);
    }
    this.greeted = true;
    ends.frame(stamped);
  }

  /**
   * Begins a link, in place of the one before. `tab` is how its other end is to know the tab. Throws if there may be
   * none.
   */
  link(tab: string, ends: Ends): Link {
    if (this.gone || !this.admitted) throw new Error("pagewire: the document has gone, or may not be read");
    this.halt("another link has begun");
    this.ends = ends;
    this.name = tab;
    this.starts++;
    this.say("start");
    this.keeper.changed();
    const live = () => this.ends === ends;
    return {
      say: (frame) => live() && this.say(frame),
      close: () => live() && this.quit(),
      expel: (why) => live() && this.expel(why),
    } as Link;
  }

  /** Forgets the link. */
  private quit(): void {
    this.ends = undefined;
    this.greeted = false;
    this.say(null);
    this.keeper.changed();
  }

  /** Ends the link, if there is one. */
  private halt(reason: string): void {
    const { ends } = this;
    if (!ends) return;
    this.quit();
    ends.closed(reason);
  }

  private expel(why: string): void {
    this.keeper.refuse(why, `a document of ${this.origin} in tab ${this.tab}`);
    this.remove();
  }

  /** Lets the document go, by our decision or because it has gone. */
  remove(): void {
    if (this.gone) return;
    this.halt("the page has gone");
    this.gone = true;
    this.keeper.removed(this);
    this.port.disconnect();
    this.keeper.changed();
  }

  /** Asks whether the document is admitted, and acts on that. */
  async judge(): Promise<void> {
    const admitted = (await this.keeper.admits(this.origin)) === true;
    if (this.gone) return;
    const was = this.admitted;
    this.admitted = admitted;
    if (was && !admitted) this.halt("the user has withdrawn what was allowed");
    this.dismiss();
    this.keeper.changed();
  }

  /** Has the relay of a document that is not admitted hang up, and be quiet until it is told to look. */
  dismiss(): void {
    if (!this.admitted && !this.keeper.attended()) this.say("wait");
  }
}

/** The documents that there are, of a kind: extension.d.ts. */
export interface Kept<D> {
  list(): D[];
  look(): Promise<void>;
  attend(on: boolean): void;
  readonly refused: ReadonlyMap<string, number>;
  refuse(why: string, who: string): void;
}

/** Takes the documents that come. To be called when the worker starts, before anything is awaited. */
export function documents<D extends Live>(
  options: Pick<Options, "admits" | "changed">,
  Kind: new (...of: ConstructorParameters<typeof Live>) => D,
): Kept<D> {
  const all = new Map<number, D>();
  const refused = new Map<string, number>();
  let last = 0;
  let attended = false;

  const refuse = (why: string, who: string) => {
    refused.set(why, (refused.get(why) ?? 0) + 1);
    console.warn(`pagewire: refused ${who}: ${why}`);
    changed();
  };
  let due = false;
  const changed = () => {
    if (due || !options.changed) return;
    due = true;
    queueMicrotask(() => {
      due = false;
      options.changed!();
    });
  };
  const keeper: Keeper = {
    refuse,
    changed,
    removed: ({ id }) => all.delete(id),
    admits: options.admits,
    attended: () => attended,
  };

  chrome.runtime.onConnect.addListener((port) => {
    if (port.name !== fromRelay) return;
    const { sender } = port;
    const { tab, frameId, origin = "", id } = sender ?? {};
    const who = `${id ?? "somebody"} at ${origin || "no origin"}`;
    const turnDown = (why: string) => {
      refuse(why, who);
      port.disconnect();
    };
    if (
      id !== chrome.runtime.id ||
      tab?.id === undefined ||
      frameId === undefined ||
      !/^https?:\/\/[^/]+$/.test(origin)
    )
      return turnDown("not a document of a web page");
    let ofTab = 0;
    for (const other of all.values()) {
      if (other.tab !== tab.id) continue;
      ofTab++;
      // The tab goes on to another document: the one before says so, too, but maybe later.
      if (other.frameId === frameId) other.remove();
    }
    if (all.size >= maxDocuments || ofTab >= maxPerTab) return turnDown("too many documents");
    const document = new Kind(keeper, port, ++last, tab.id, frameId, origin);
    all.set(document.id, document);
    port.onMessage.addListener((message) => document.hear(message));
    port.onDisconnect.addListener(() => {
      void chrome.runtime.lastError;
      document.remove();
    });
    void document.judge();
  });
  // Nobody but our own pages has a word here. Without a listener the browser would refuse as well, but nobody would
  // know.
  const stranger = "another extension";
  chrome.runtime.onConnectExternal.addListener((port) => {
    refuse(stranger, port.sender?.id ?? port.sender?.origin ?? "somebody");
    port.disconnect();
  });
  chrome.runtime.onMessageExternal.addListener((_message, sender) =>
    refuse(stranger, sender.id ?? sender.origin ?? "somebody"),
  );

  return {
    refused,
    refuse,
    list: () => [...all.values()],
    attend(on) {
      attended = on;
      for (const document of all.values()) document.dismiss();
    },
    async look() {
      await Promise.all([...all.values()].map((document) => document.judge()));
      const tabs = await chrome.tabs.query({});
      // A tab without a relay says that nobody is there.
      await Promise.allSettled(
        tabs.map(({ id }) => (id === undefined ? undefined : chrome.tabs.sendMessage(id, look))),
      );
    },
  };
}
