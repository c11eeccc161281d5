/**
 * What one tab shows, in the extension's service worker: the page's end of a link with the gateway,
 * beside the document's own. The document is no party to it. Nothing runs in a tab until an agent
 * reads or watches it. Then the browser runs reader.ts there, in a world where no script of the
 * page is.
 *
 * The browser names the tab and the origin of a reader's port. A reader of another origin, or one
 * that nobody asked for, is refused: so the text of one site never goes for that of another. What a
 * reader says is bounded, and passed on.
 */
import { Status } from "../link/link.ts";
import type { Part } from "../shown/part.ts";
import type { FromReader, PartRef, ToReader } from "./messages.ts";
import type { Parts } from "./picked.ts";
import { onClosed, TokenBucket } from "./ports.ts";
import { hello } from "./reports.ts";
import { shortTitle, urlWithin, webOrigin, withoutQuery } from "./tabs.ts";
import type { Link, Linkable, LinkEvents, TabName } from "./transport.ts";

/** The longest text of a look, in UTF-16 code units; the longest wait, in ms. */
const maxText = 1 << 20;
const longestWait = 60_000;
/**
 * The permitted messages of a reader a second, and at once, for each thing that is watched. It
 * tells two changes a second.
 */
const rate = 20;
const burst = 100;
/**
 * A connection counts as so many messages: after it the reader runs again, and is told all again.
 */
const connection = 10;
const tooMuch = "the reader of what a page shows tells too much";

/** The descriptor of what a page shows, but for its URI. */
const descriptor = {
  name: "shown",
  mimeType: "text/markdown",
  description:
    "All that a person sees of the page, line by line. ?from=N goes on after N characters, " +
    "?links=1 has the addresses of links",
  uriSchema: {
    type: "object",
    additionalProperties: false,
    properties: { from: { type: "integer", minimum: 0 }, links: { type: "integer", minimum: 0, maximum: 1 } },
  },
};

/** Descriptions of parts, by `as`: those of the gateway for its own. */
const aboutParts = {
  text: "A part of what a person sees of the page, line by line",
  table: "The rows of a table that a person sees in the page, by the names in its header",
  form: "The values of a form in the page, by the names that a person sees, without secrets",
};
const isJSON = (part: Part | undefined) => part?.as === "table" || part?.as === "form";
const mimeTypeOf = (part: Part | undefined) => (isJSON(part) ? "application/json" : descriptor.mimeType);

/** No document has one of these as its id (documents.ts). */
let lastId = 2 ** 40;
let lastCall = 0;

/** What the worker knows of its user. */
export interface User {
  refuse(reason: string, peer: string): void;
  profile(): string;
  /** The tab's key by CDP, if that is known. */
  target(tab: number): string | undefined;
}

/**
 * What one tab shows, while its document is of `origin`: a reload or a navigation within that is a
 * change of text.
 */
export class ShownTab implements Linkable {
  readonly id = ++lastId;
  /** False once it is closed: then it has no link, no reader and no calls. */
  admitted = true;
  /** Counts the events of loading documents, after which the tab has no badge. */
  loads = 0;
  private readonly epoch = crypto.randomUUID();
  /** The present link's; undefined between links. */
  private events: LinkEvents | undefined;
  /**
   * The port of the newest document's reader. All others are disconnected, and what they say is
   * dropped.
   */
  private reader: chrome.runtime.Port | undefined;
  /** Whether the browser was asked to run a reader, and has not answered. */
  private opening = false;
  /** Reads that have no answer, and what they asked for. A new reader is asked again. */
  private readonly calls = new Map<number, { ask: ToReader; done: (text?: string) => void }>();
  /**
   * The URIs that the link watches. The reader watches their parts: a new one is told all of them.
   */
  private readonly watched = new Set<string>();
  /** What is for agents: everything or not, and parts. */
  private shared: { whole: boolean; parts: Parts } = { whole: true, parts: {} };
  /** URI → descriptor and rule, a line each, as the link has them; undefined before its hello. */
  private offered: Map<string, string> | undefined;
  /** The number of changes. It never falls, also over several links. */
  private revision = 0;
  /** The facts that the link knows; "" before its hello. */
  private noted = "";
  /** What the reader may say that nobody has asked for. */
  private readonly allowed = new TokenBucket(rate, burst);

  constructor(
    private readonly user: User,
    readonly tab: number,
    readonly origin: string,
    private about: chrome.tabs.Tab,
  ) {}

  link(name: TabName, events: LinkEvents): Link {
    if (!this.admitted) throw new Error("the tab has gone, or may not be read any more");
    this.events = events;
    const { tab, origin, epoch } = this;
    const live = () => this.events === events;
    queueMicrotask(() => {
      if (!live()) return;
      const { url = "", windowId } = this.about;
      const about = {
        ...{ shown: true, epoch, tab: name(tab), frame: "", origin, ...this.facts() },
        url: withoutQuery(urlWithin(origin, url)),
        ...{ browser: navigator.userAgent, profile: this.user.profile(), window: name(windowId) },
      };
      this.offered = new Map();
      events.frame(hello(about));
      this.send(...this.changes(), ["setTools", "[]"]);
    });
    return {
      send: (frame) => live() && this.receiveFrame(frame),
      close: () => live() && this.unlink(),
      refuse: (why) => live() && this.refuse(why),
    } as Link;
  }

  /** Takes what is for agents from now on. */
  share(whole: boolean, parts: Parts): void {
    for (const uri of this.watched) {
      const { name, part } = this.refOf(this.nameOf(uri));
      if (name ? JSON.stringify(part) !== JSON.stringify(parts[name]) : !whole)
        this.post({ watch: false, ...(name && { name, part }) });
    }
    this.shared = { whole, parts };
    const calls = this.changes();
    if (calls.length) this.send(...calls);
  }

  /** The calls for what has come and gone. */
  private changes(): unknown[][] {
    const { offered, origin } = this;
    if (!offered) return [];
    const { whole, parts } = this.shared;
    const now = new Map<string, string>();
    const add = (path: string, members: object, part?: Part) => {
      const uri = `${origin}/.pagewire/${path}`;
      now.set(uri, `${JSON.stringify({ uri, ...members })}\n${JSON.stringify(part)}`);
    };
    if (whole) add("shown", descriptor);
    for (const [name, part] of Object.entries(parts)) {
      const { uriSchema } = descriptor;
      const byPlace = part.find.every(({ place }) => place !== undefined);
      const place = byPlace ? ". It is found by its place alone: another part may stand there now" : "";
      const about = { name, mimeType: mimeTypeOf(part), description: aboutParts[part.as ?? "text"] + place };
      add(`parts/${name}`, isJSON(part) ? about : { ...about, uriSchema }, part);
    }
    const gone = [...offered].filter(([uri, text]) => now.get(uri) !== text).map(([uri]) => ["unregister", uri]);
    const come = [...now]
      .filter(([uri, text]) => offered.get(uri) !== text)
      .map(([, text]) => ["register", text.split("\n")[0]]);
    this.offered = now;
    return [...gone, ...come];
  }

  /** The name of the part that a URI has, or "" for the whole. */
  private nameOf(uri: string): string {
    const before = `${this.origin}/.pagewire/parts/`;
    return uri.startsWith(before) ? uri.slice(before.length).split("?")[0]! : "";
  }
  /** Whether agents may have it now: not what was withdrawn while it was being read. */
  private isShared(uri: string): boolean {
    return this.offered?.has(uri.split("?")[0]!) === true;
  }
  private refOf(name: string): PartRef {
    const { parts } = this.shared;
    return Object.hasOwn(parts, name) ? { name, part: parts[name]! } : {};
  }

  /** A worker that asks the browser for something is not suspended. */
  keepAlive(): void {
    void chrome.tabs.get(this.tab).catch(() => {}); // it has gone, and an event follows
  }

  get url(): string {
    return webOrigin(this.about.url ?? "") === this.origin ? this.about.url! : `${this.origin}/`;
  }

  /** Takes what the browser says of the tab now. */
  note(about: chrome.tabs.Tab): void {
    this.about = about;
    const { noted } = this;
    const facts = this.facts();
    if (noted && noted !== this.noted) this.send(["note", facts]);
    if (this.isAsked) void this.open(); // there may have been no document that could be read
  }

  /** The text of now, or undefined if the page cannot be read. */
  text(from = 0, links = false, ref: PartRef = {}): Promise<string | undefined> {
    const read = ++lastCall;
    return new Promise((done) => {
      const ask = { read, from, links, ...ref };
      this.calls.set(read, { ask, done });
      if (this.reader) this.post(ask);
      else void this.open();
    });
  }

  /** Takes the port of a reader, maybe its next one, or reports that nobody has asked for it. */
  accept(port: chrome.runtime.Port, origin: string | undefined): boolean {
    if (origin !== this.origin || !(this.isAsked || this.reader)) return false;
    if (!this.spends(connection)) {
      this.refuse("the reader of what a page shows connects again and again");
      return false;
    }
    this.reader?.disconnect();
    this.reader = port;
    port.onMessage.addListener((message) => port === this.reader && this.receive(message as FromReader));
    onClosed(port, () => port === this.reader && this.readerClosed());
    this.postWatches();
    for (const { ask } of this.calls.values()) this.post(ask);
    return true;
  }

  /** Closes it: the tab has gone, or the user has withdrawn what was granted. */
  close(): void {
    if (!this.admitted) return;
    this.admitted = false;
    this.events = this.offered = undefined;
    this.watched.clear();
    this.failReads();
    this.post("stop");
    this.reader?.disconnect();
    this.reader = undefined;
  }

  private get isAsked() {
    return this.admitted && this.calls.size + this.watched.size > 0;
  }

  private facts() {
    const { title, lastAccessed = 0 } = this.about as chrome.tabs.Tab & { lastAccessed?: number };
    const target = this.user.target(this.tab);
    const facts = { title: shortTitle(title), focused: Math.floor(lastAccessed), ...(target && { target }) };
    this.noted = JSON.stringify(facts);
    return facts;
  }

  private send(...calls: unknown[]): void {
    this.events?.frame(JSON.stringify(calls));
  }
  private post(message: ToReader): void {
    this.reader?.postMessage(message);
  }

  /**
   * Runs the reader in the tab's document, if that is still of the origin. The reader then
   * connects.
   */
  private async open(): Promise<void> {
    if (this.opening || this.reader) return;
    this.opening = true;
    try {
      const { url = "" } = await chrome.tabs.get(this.tab);
      if (webOrigin(url) !== this.origin) throw new Error("the tab shows another site");
      await chrome.scripting.executeScript({
        target: { tabId: this.tab },
        files: ["shown.js"],
        injectImmediately: true,
      });
    } catch {
      this.failReads(); // an error page, or one of the browser's own
    }
    this.opening = false;
  }

  /** Answers all reads: there is nothing to read. */
  private failReads(): void {
    for (const { done } of this.calls.values()) done();
    this.calls.clear();
  }

  /** The reader has gone, with its document. The text of the next is another one. */
  private readerClosed(): void {
    this.reader = undefined;
    this.changed();
    if (this.isAsked) void this.open();
  }

  /** Tells of a change of one part, or of all. */
  private changed(name?: string): void {
    this.revision++;
    const uris = [...this.watched].filter((uri) => name === undefined || this.nameOf(uri) === name);
    if (uris.length) this.send(...uris.map((uri) => ["touch", uri, this.revision]));
  }

  private postWatches(): void {
    for (const name of new Set([...this.watched].map((uri) => this.nameOf(uri)))) {
      const ref = this.refOf(name);
      if (!name || ref.part) this.post({ watch: true, ...ref });
    }
  }

  /** Whether a reader may still do what costs so much. What each watched thing may tell adds up. */
  private spends(tokens: number): boolean {
    return this.allowed.take(tokens, Math.max(1, this.watched.size));
  }

  private receive(message: FromReader): void {
    const answer = typeof message === "object" && message !== null && "call" in message ? message : undefined;
    const known = answer && this.calls.get(answer.call);
    if (known) {
      const { call, text } = answer;
      this.calls.delete(call);
      return known.done(typeof text === "string" && text.length <= maxText ? text : undefined);
    }
    // Only what nobody has asked for counts: agents may read as often as they like.
    if (!this.spends(1)) return this.refuse(tooMuch);
    if (message === "changed") return this.changed("");
    if (typeof message !== "object" || message === null) return;
    if ("changed" in message) return this.changed(`${message.changed}`);
    if ("wait" in message) {
      const { reader } = this;
      const ms = Math.min(Number(message.ms) || 0, longestWait);
      setTimeout(() => reader === this.reader && this.post({ wake: message.wait }), ms);
    }
  }

  /** Takes a frame of the gateway. */
  private receiveFrame(frame: string): void {
    for (const [name, a, b, c, d] of JSON.parse(frame) as [string, never, never, never, string][]) {
      if (name === "read") void this.read(a, c, d);
      else if (name === "watched") this.watch(a, b);
      else if (name === "report") console.warn(`pagewire: what ${this.origin} shows: ${a as string}`);
    }
  }

  private async read(call: number, uri: string, params: string): Promise<void> {
    const { events, revision } = this;
    const { from = 0, links = 0 } = JSON.parse(params || "{}") as { from?: number; links?: number };
    const name = this.nameOf(uri);
    const ref = this.refOf(name);
    const found = this.isShared(uri) ? await this.text(from, links > 0, ref) : undefined;
    if (events !== this.events) return;
    const text = this.isShared(uri) ? found : undefined;
    const why = name ? `the page does not show the part ${name} now` : "the page cannot be read now";
    if (text === undefined) return this.send(["complete", call, Status.failed, revision, why]);
    events?.frame(`=${call} ${revision} ${JSON.stringify([{ uri, mimeType: mimeTypeOf(ref.part), text }])}`);
  }

  private watch(uri: string, on: boolean): void {
    if (on) this.watched.add(uri);
    else this.watched.delete(uri);
    const name = this.nameOf(uri);
    if (!this.reader && on) void this.open();
    else if (on || ![...this.watched].some((one) => this.nameOf(one) === name)) {
      const ref = this.refOf(name);
      if (!name || ref.part) this.post({ watch: on, ...ref });
    }
    if (on) this.send(["touch", uri, this.revision]);
  }

  /** The link has ended; another one may follow. */
  private unlink(): void {
    this.events = this.offered = undefined;
    const names = new Set([...this.watched].map((uri) => this.nameOf(uri)));
    this.watched.clear();
    for (const name of names) this.post({ watch: false, ...this.refOf(name) });
  }

  private refuse(why: string): void {
    const { events } = this;
    this.user.refuse(why, `what ${this.origin} shows in tab ${this.tab}`);
    this.close();
    events?.closed(why);
  }
}
