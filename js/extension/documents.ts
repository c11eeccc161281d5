/**
 * The documents of the tabs, in the extension's service worker. The other end of a document's port
 * is relay.ts, which passes the messages of page.ts on.
 *
 * The browser names a document's origin, tab and window in its port's sender. The worker writes
 * them, with the relay's notes, into the first frame of the document's link. It passes all other
 * frames on unread; the core at the other end checks them. A document of an origin that is not
 * admitted has no link: the worker keeps its count of resources and tools. A port that breaks or
 * floods the protocol, or has no document, is closed, counted and logged; others go on.
 */
import type { Document, Options } from "../extension.d.ts";
import { fromRelay, type Note, recheck, start, type ToRelay } from "./messages.ts";
import { onClosed, TokenBucket } from "./ports.ts";
import { maxURL, shortTitle } from "./tabs.ts";
import type { Link, LinkEvents, Linkable, TabName } from "./transport.ts";

/**
 * The longest first frame of a link, and the longest other one, in UTF-16 code units. LINK.md has
 * them in bytes.
 */
const maxHello = 64 << 10;
const maxFrame = 17 << 20;
/**
 * The permitted messages of a document a second, and at once. A page layer sends at most 1,000
 * updates a second.
 */
const rate = 5_000;
const burst = 10_000;
/** The most documents, in all and of one tab. */
const maxDocuments = 1024;
const maxPerTab = 128;

const strange = "a message that the page layer does not send";

/** The list that a document is in. */
interface Owner {
  refuse(reason: string, peer: string): void;
  changed(): void;
  removed(document: Live): void;
  admits(origin: string): boolean | Promise<boolean>;
  /** Whether documents that are not admitted are kept. */
  attended(): boolean;
  /** The user's name for the browser's profile, or "". */
  profile(): string;
}

/** A document, without sessions: worker.ts adds those. */
export class Live implements Linkable, Omit<Document, "open" | "sessions"> {
  // What the relay has told, within bounds: not to be trusted beyond the document's own origin.
  frame = "";
  url: string;
  title = "";
  focused = 0;
  offers = 0;
  /** Of the first of them, in lines. */
  names = "";
  /** The user's last answer. Without it there is no link. */
  admitted = false;
  /** For good: it has no port, no link, and is in no list. */
  gone = false;
  /** The present link's; undefined if there is none. */
  private events: LinkEvents | undefined;
  /** Makes the names of the tab and its window at the link's other end. */
  private name: TabName = String;
  /** The message that started the last link. */
  private begun = "";
  /** The page has confirmed that start. Frames before that belong to earlier links. */
  private confirmed = false;
  /** The link's first frame has been passed on. */
  private helloSent = false;
  /** The number of the last check of admission, and of the last one that has its answer. */
  private checks = 0;
  private answered = 0;
  private readonly allowed = new TokenBucket(rate, burst);

  constructor(
    private readonly owner: Owner,
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
    return this.events !== undefined;
  }

  private send(message: ToRelay): void {
    if (this.gone) return;
    try {
      this.port.postMessage(message);
    } catch {
      this.remove(); // the other end has gone; onDisconnect follows
    }
  }

  keepAlive(): void {
    this.send("alive");
  }

  receive(message: unknown): void {
    if (this.gone) return;
    if (!this.allowed.take()) return this.refuse(`more than ${rate} messages a second`);
    if (typeof message !== "string") return this.note(message);
    if (message.length > maxFrame) return this.refuse("a message is too long");
    if (message.startsWith(start)) {
      if (message !== this.begun) return; // of an earlier link
      if (this.confirmed) return this.refuse(strange);
      this.confirmed = true;
      return;
    }
    const { events } = this;
    if (!events || !this.confirmed) return; // the frame is of an earlier link
    if (!message) return this.endLink("the page has ended the link");
    if (!this.helloSent) return this.sendHello(events, message);
    events.frame(message);
  }

  private note(message: unknown): void {
    if (typeof message !== "object" || message === null) return this.refuse("a message that the relay does not send");
    const { title: before, focused: then } = this;
    const { offers, names, frame, url, title, focused } = message as Note;
    if (Number.isSafeInteger(offers) && offers! >= 0) this.offers = offers!;
    if (typeof names === "string") this.names = shortTitle(names);
    if (typeof frame === "string" && /^(\d{1,4}(\.\d{1,4}){0,7})?$/.test(frame)) this.frame = frame;
    if (typeof url === "string" && url.length <= maxURL && url.startsWith(this.origin + "/")) this.url = url;
    if (typeof title === "string") this.title = shortTitle(title);
    if (typeof focused === "number" && focused > 0) this.focused = Math.min(Math.floor(focused), Date.now());
    if (this.helloSent && (this.title !== before || this.focused !== then))
      this.events?.frame(JSON.stringify([["note", { title: this.title, focused: this.focused }]]));
    this.owner.changed();
  }

  /**
   * Passes the link's first frame on: its epoch is the page's, all other facts are the browser's
   * and the relay's.
   */
  private sendHello(events: LinkEvents, frame: string): void {
    let stamped: string;
    try {
      if (frame.length > maxHello) throw new RangeError("too long");
      const calls = JSON.parse(frame);
      const [call, version, build, { epoch, starts }] = calls[0];
      if (call !== "hello" || calls.length !== 1 || typeof epoch !== "string") throw new TypeError("no hello");
      const { frame: place, title, url, origin, focused } = this;
      const { windowId } = this.port.sender!.tab!;
      const about = {
        ...(starts === true && { starts }),
        ...{ epoch, tab: this.name(this.tab), frame: place, title, url, origin, focused },
        ...{ browser: navigator.userAgent, profile: this.owner.profile() },
        ...(windowId !== undefined && { window: this.name(windowId) }),
      };
      stamped = JSON.stringify([["hello", version, build, about]]);
    } catch {
      return this.refuse(strange);
    }
    this.helloSent = true;
    events.frame(stamped);
  }

  /**
   * Begins a link, and ends the one before. `name` makes the names of the tab and its window at the
   * other end. Throws if the document has gone or is not admitted.
   */
  link(name: TabName, events: LinkEvents): Link {
    if (this.gone || !this.admitted) throw new Error("pagewire: the document has gone, or may not be read");
    this.endLink("another link has begun");
    this.events = events;
    this.name = name;
    // A name and no count: a page that is busy may confirm a link after its end, which the relay
    // does not pass on.
    this.begun = start + crypto.randomUUID();
    this.confirmed = false;
    this.send(this.begun);
    this.owner.changed();
    const live = () => this.events === events;
    return {
      send: (frame) => live() && this.send(frame),
      close: () => live() && this.forgetLink(),
      refuse: (why) => live() && this.refuse(why),
    } as Link;
  }

  /** Ends the link without a call of `closed`. */
  private forgetLink(): void {
    this.events = undefined;
    this.helloSent = false;
    this.send(null);
    this.owner.changed();
  }

  /** Ends the link, if there is one, and calls `closed`. */
  private endLink(reason: string): void {
    const { events } = this;
    if (!events) return;
    this.forgetLink();
    events.closed(reason);
  }

  private refuse(why: string): void {
    this.owner.refuse(why, `a document of ${this.origin} in tab ${this.tab}`);
    this.remove();
  }

  /** Removes the document, which has gone or is refused. */
  remove(): void {
    if (this.gone) return;
    this.endLink("the page has gone");
    this.gone = true;
    this.owner.removed(this);
    this.port.disconnect();
    this.owner.changed();
  }

  /** Asks whether the document is admitted. A link ends if it no longer is. */
  async checkAdmission(): Promise<void> {
    const check = ++this.checks;
    const admitted = (await this.owner.admits(this.origin)) === true;
    // Answers may overtake each other: one from before the user's withdrawal must not come last.
    if (this.gone || check < this.answered) return;
    this.answered = check;
    const was = this.admitted;
    this.admitted = admitted;
    if (was && !admitted) this.endLink("the user has withdrawn what was allowed");
    this.sendWait();
    this.owner.changed();
  }

  /**
   * Tells the relay to disconnect and wait for `recheck`, if the document is not admitted and no
   * panel is open.
   */
  sendWait(): void {
    if (!this.admitted && !this.owner.attended()) this.send("wait");
  }
}

/** `Documents` of extension.d.ts, generic in the class of its documents. */
export interface DocumentList<D> {
  list(): D[];
  look(): Promise<void>;
  attend(on: boolean): void;
  readonly refused: ReadonlyMap<string, number>;
  refuse(reason: string, peer: string): void;
}

/** Begins to serve documents. Call it when the worker starts, before anything is awaited. */
export function documents<D extends Live>(
  options: Pick<Options, "admits" | "changed"> & { profile?(): string },
  Kind: new (...of: ConstructorParameters<typeof Live>) => D,
): DocumentList<D> {
  /** Documents by id: those whose port is open, at most `maxDocuments`. */
  const all = new Map<number, D>();
  /** Why ports were refused, and how often. The reasons are ours. */
  const refused = new Map<string, number>();
  /** The last id. None is given twice. */
  let last = 0;
  /** Whether one of the extension's own pages is open. */
  let attended = false;

  const refuse = (reason: string, peer: string) => {
    refused.set(reason, (refused.get(reason) ?? 0) + 1);
    console.warn(`pagewire: refused ${peer}: ${reason}`);
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
  const owner: Owner = {
    refuse,
    changed,
    removed: ({ id }) => all.delete(id),
    admits: options.admits,
    attended: () => attended,
    profile: options.profile ?? (() => ""),
  };

  chrome.runtime.onConnect.addListener((port) => {
    if (port.name !== fromRelay) return;
    const { sender } = port;
    const { tab, frameId, origin = "", id } = sender ?? {};
    const peer = `${id ?? "somebody"} at ${origin || "no origin"}`;
    const reject = (why: string) => {
      refuse(why, peer);
      port.disconnect();
    };
    if (
      id !== chrome.runtime.id ||
      tab?.id === undefined ||
      frameId === undefined ||
      !/^https?:\/\/[^/]+$/.test(origin)
    )
      return reject("not a document of a web page");
    let ofTab = 0;
    for (const other of all.values()) {
      if (other.tab !== tab.id) continue;
      ofTab++;
      // The frame has loaded another document. The port of the earlier document closes too, but
      // maybe later.
      if (other.frameId === frameId) other.remove();
    }
    if (all.size >= maxDocuments || ofTab >= maxPerTab) return reject("too many documents");
    const document = new Kind(owner, port, ++last, tab.id, frameId, origin);
    all.set(document.id, document);
    port.onMessage.addListener((message) => document.receive(message));
    onClosed(port, () => document.remove());
    void document.checkAdmission();
  });
  // Other extensions are refused. Without listeners the browser would refuse them too, but they
  // would not be counted.
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
      for (const document of all.values()) document.sendWait();
    },
    async look() {
      await Promise.all([...all.values()].map((document) => document.checkAdmission()));
      const tabs = await chrome.tabs.query({});
      // For a tab without a relay the promise rejects.
      await Promise.allSettled(
        tabs.map(({ id }) => (id === undefined ? undefined : chrome.tabs.sendMessage(id, recheck))),
      );
    },
  };
}
