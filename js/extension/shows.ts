/**
 * What tabs show, in the extension's service worker: for each tab of a site whose user has granted that, the page's end
 * of a link with the gateway, beside the document's own. The document is no party to it. Nothing runs in a tab until an
 * agent reads or watches it. Then the browser runs reader.ts there, in a world where no script of the page is.
 *
 * The browser names the tab and the origin of a reader's port. A reader of another origin, or one that nobody asked for,
 * is refused: so the text of one site never goes for that of another. What a reader says is bounded, and passed on.
 */
import { Status } from "../link/link.ts";
import type { Part } from "../shown/part.ts";
import { maxTitle, maxURL } from "./documents.ts";
import { type FromReader, fromReader, type Of, type ToReader } from "./messages.ts";
import { webOrigin } from "./permissions.ts";
import type { Picked, Parts } from "./picked.ts";
import { hello } from "./reports.ts";
import type { Link, Linkable, LinkEvents, TabName } from "./transport.ts";

/** The most tabs at once; the longest text of a look, in UTF-16 code units; the longest wait, in ms. */
const maxTabs = 200;
const maxText = 1 << 20;
const longestWait = 60_000;
/** The permitted messages of a reader a second, and at once, for each thing that is watched. It tells two changes a second. */
const rate = 20;
const burst = 100;
/** A connection counts as so many messages: after it the reader runs again, and is told all again. */
const connection = 10;
const tooMuch = "the reader of what a page shows tells too much";

/** The pause after a look at the browser's tabs, in ms: pages may change their titles many times a second. */
const pause = 100;

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
interface User {
  refuse(reason: string, peer: string): void;
  profile(): string;
  /** The tab's key by CDP, if that is known. */
  target(tab: number): string | undefined;
}

/** What one tab shows, while its document is of `origin`: a reload or a navigation within that is a change of text. */
export class ShownTab implements Linkable {
  readonly id = ++lastId;
  /** False once it has ended. */
  admitted = true;
  /** Counts the events of loading documents, after which the tab has no badge. */
  loads = 0;
  private readonly epoch = crypto.randomUUID();
  private events: LinkEvents | undefined;
  private reader: chrome.runtime.Port | undefined;
  private opening = false;
  /** Reads that have no answer, and what they asked for. */
  private readonly calls = new Map<number, { ask: ToReader; done: (text?: string) => void }>();
  private readonly watched = new Set<string>();
  /** What is for agents: everything or not, and parts. */
  private shared: { whole: boolean; parts: Parts } = { whole: true, parts: {} };
  /** URI → descriptor and rule, a line each, as the link has them; undefined before its hello. */
  private offered: Map<string, string> | undefined;
  private revision = 0;
  private noted = "";
  private tokens = burst;
  private filled = performance.now();

  constructor(
    private readonly shows: User,
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
        url: url.startsWith(origin + "/") && url.length <= maxURL ? url.replace(/[?#].*/s, "") : origin + "/",
        ...{ browser: navigator.userAgent, profile: this.shows.profile(), window: name(windowId) },
      };
      this.offered = new Map();
      events.frame(hello(about));
      this.say(...this.changes(), ["setTools", "[]"]);
    });
    return {
      send: (frame) => live() && this.receive(frame),
      close: () => live() && this.unlink(),
      refuse: (why) => live() && this.refuse(why),
    } as Link;
  }

  /** Takes what is for agents from now on. */
  share(whole: boolean, parts: Parts): void {
    for (const uri of this.watched) {
      const { name, part } = this.of(this.nameOf(uri));
      if (name ? JSON.stringify(part) !== JSON.stringify(parts[name]) : !whole)
        this.tell({ watch: false, ...(name && { name, part }) });
    }
    this.shared = { whole, parts };
    const calls = this.changes();
    if (calls.length) this.say(...calls);
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
  private of(name: string): Of {
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
    if (noted && noted !== this.noted) this.say(["note", facts]);
    if (this.isAsked) void this.open(); // there may have been no document that could be read
  }

  /** The text of now, or undefined if the page cannot be read. */
  text(from = 0, links = false, of: Of = {}): Promise<string | undefined> {
    const read = ++lastCall;
    return new Promise((done) => {
      const ask = { read, from, links, ...of };
      this.calls.set(read, { ask, done });
      if (this.reader) this.tell(ask);
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
    port.onMessage.addListener((message) => port === this.reader && this.hear(message as FromReader));
    port.onDisconnect.addListener(() => {
      void chrome.runtime.lastError;
      if (port === this.reader) this.lost();
    });
    this.tellWatches();
    for (const { ask } of this.calls.values()) this.tell(ask);
    return true;
  }

  /** Ends it: the tab has gone, or the user has withdrawn what was granted. */
  end(): void {
    if (!this.admitted) return;
    this.admitted = false;
    this.stop();
  }

  private get isAsked() {
    return this.admitted && this.calls.size + this.watched.size > 0;
  }

  private facts() {
    const { title = "", lastAccessed = 0 } = this.about as chrome.tabs.Tab & { lastAccessed?: number };
    const target = this.shows.target(this.tab);
    const facts = { title: title.slice(0, maxTitle), focused: Math.floor(lastAccessed), ...(target && { target }) };
    this.noted = JSON.stringify(facts);
    return facts;
  }

  private say(...calls: unknown[]): void {
    this.events?.frame(JSON.stringify(calls));
  }
  private tell(message: ToReader): void {
    this.reader?.postMessage(message);
  }

  /** Runs the reader in the tab's document, if that is still of the origin. The reader then connects. */
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
      this.fail(); // an error page, or one of the browser's own
    }
    this.opening = false;
  }

  /** Answers all reads: there is nothing to read. */
  private fail(): void {
    for (const { done } of this.calls.values()) done();
    this.calls.clear();
  }

  /** The reader has gone, with its document. The text of the next is another one. */
  private lost(): void {
    this.reader = undefined;
    this.changed();
    if (this.isAsked) void this.open();
  }

  /** Tells of a change of one part, or of all. */
  private changed(name?: string): void {
    this.revision++;
    const uris = [...this.watched].filter((uri) => name === undefined || this.nameOf(uri) === name);
    if (uris.length) this.say(...uris.map((uri) => ["touch", uri, this.revision]));
  }

  private tellWatches(): void {
    for (const name of new Set([...this.watched].map((uri) => this.nameOf(uri)))) {
      const of = this.of(name);
      if (!name || of.part) this.tell({ watch: true, ...of });
    }
  }

  /** Whether a reader may still do what costs so much. What each watched thing may tell adds up. */
  private spends(tokens: number): boolean {
    const now = performance.now();
    const things = Math.max(1, this.watched.size);
    const filled = this.tokens + ((now - this.filled) / 1000) * rate * things;
    this.tokens = Math.min(burst * things, filled) - tokens;
    this.filled = now;
    return this.tokens >= 0;
  }

  private hear(message: FromReader): void {
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
      setTimeout(() => reader === this.reader && this.tell({ wake: message.wait }), ms);
    }
  }

  /** Takes a frame of the gateway. */
  private receive(frame: string): void {
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
    const of = this.of(name);
    const found = this.isShared(uri) ? await this.text(from, links > 0, of) : undefined;
    if (events !== this.events) return;
    const text = this.isShared(uri) ? found : undefined;
    const why = name ? `the page does not show the part ${name} now` : "the page cannot be read now";
    if (text === undefined) return this.say(["complete", call, Status.failed, revision, why]);
    events?.frame(`=${call} ${revision} ${JSON.stringify([{ uri, mimeType: mimeTypeOf(of.part), text }])}`);
  }

  private watch(uri: string, on: boolean): void {
    if (on) this.watched.add(uri);
    else this.watched.delete(uri);
    const name = this.nameOf(uri);
    if (!this.reader && on) void this.open();
    else if (on || ![...this.watched].some((one) => this.nameOf(one) === name)) {
      const of = this.of(name);
      if (!name || of.part) this.tell({ watch: on, ...of });
    }
    if (on) this.say(["touch", uri, this.revision]);
  }

  /** The link has ended; another one may follow. */
  private unlink(): void {
    this.events = this.offered = undefined;
    const names = new Set([...this.watched].map((uri) => this.nameOf(uri)));
    this.watched.clear();
    for (const name of names) this.tell({ watch: false, ...this.of(name) });
  }

  private refuse(why: string): void {
    const { events } = this;
    this.shows.refuse(why, `what ${this.origin} shows in tab ${this.tab}`);
    this.end();
    events?.closed(why);
  }

  private stop(): void {
    this.events = this.offered = undefined;
    this.watched.clear();
    this.fail();
    this.tell("stop");
    this.reader?.disconnect();
    this.reader = undefined;
  }
}

/** The tabs of the granted sites. `changed` is called when there are others, or a document is loaded in one. */
export class Shows {
  private readonly tabs = new Map<number, ShownTab>();
  /** The tab that the user looks at before granting anything. */
  private readonly previews = new Map<number, ShownTab>();
  /** Whether anything is allowed. */
  private following = false;
  private whole: readonly string[] = [];
  private picked: Pick<Picked, "at"> | undefined;
  private looks: Promise<void> = Promise.resolve();
  private due = false;

  constructor(
    private readonly user: User,
    private readonly changed: () => void,
  ) {
    chrome.runtime.onConnect.addListener((port) => {
      if (port.name !== fromReader) return;
      const { id, tab, frameId, origin } = port.sender ?? {};
      const ours = id === chrome.runtime.id && frameId === 0 && tab?.id !== undefined;
      for (const tabs of [this.tabs, this.previews]) if (ours && tabs.get(tab.id!)?.accept(port, origin)) return;
      port.disconnect();
    });
  }

  list(): ShownTab[] {
    return [...this.tabs.values()].filter(({ admitted }) => admitted);
  }

  /** Serves the tabs of these sites, and the user's parts of others, from now on, and at once nothing else. */
  allow(whole: readonly string[], picked?: Pick<Picked, "at" | "origins">): void {
    this.whole = whole;
    this.picked = picked;
    for (const [id, one] of this.tabs)
      if (this.isFor(one.origin, one.url)) this.share(one);
      else this.remove(id, one);
    const was = this.following;
    const now = (this.following = whole.length > 0 || !!picked?.origins().length);
    const { onUpdated, onActivated, onRemoved } = chrome.tabs;
    const follow = now ? "addListener" : "removeListener";
    if (was !== now) {
      onUpdated[follow](this.onUpdated);
      for (const event of [onActivated, onRemoved]) event[follow](this.look);
    }
    // Also if the sites are the same: what is for agents in a tab may be more than before.
    if (was || now) this.look();
  }

  /** Whether anything of a page is for agents. */
  private isFor(origin: string, url: string): boolean {
    return this.whole.includes(origin) || Object.keys(this.picked?.at(origin, url) ?? {}).length > 0;
  }

  private share(one: ShownTab): void {
    one.share(this.whole.includes(one.origin), this.picked?.at(one.origin, one.url) ?? {});
  }

  /** What agents would read of a tab now, or of a part. `text` is missing if it cannot be read. */
  async preview(id: number, of: Of = {}): Promise<{ origin: string; text?: string }> {
    const tab = await chrome.tabs.get(id);
    const origin = webOrigin(tab.url ?? "");
    if (!origin) return { origin };
    let one = this.tabs.get(id);
    if (!one?.admitted || one.origin !== origin) {
      one = new ShownTab(this.user, id, origin, tab);
      this.previews.get(id)?.end();
      this.previews.set(id, one);
    }
    const text = await one.text(0, false, of);
    if (this.previews.get(id) === one) this.remove(id, one, this.previews);
    return { origin, ...(text !== undefined && { text }) };
  }

  private remove(id: number, one: ShownTab, from = this.tabs): void {
    from.delete(id);
    one.end();
  }

  private readonly onUpdated = (id: number, { status }: { status?: string }): void => {
    const one = this.tabs.get(id);
    this.look();
    if (!one || !status) return;
    one.loads++;
    this.changed();
  };

  /** More is known of a tab. */
  known(id: number): void {
    if (this.tabs.has(id)) this.look();
  }

  /** Brings the tabs in line with the browser's. Calls while a look waits for the look before have that one alone. */
  private readonly look = (): void => {
    if (this.due) return;
    this.due = true;
    this.looks = this.looks.then(async () => {
      this.due = false;
      await this.lookNow().catch(() => {}); // the browser ends
      await new Promise((done) => setTimeout(done, pause));
    });
  };

  private async lookNow(): Promise<void> {
    const open = new Map<number, chrome.tabs.Tab>();
    if (this.following) for (const tab of await chrome.tabs.query({})) if (tab.id !== undefined) open.set(tab.id, tab);
    const before = this.list();
    for (const [id, one] of this.tabs) {
      const { url = "" } = open.get(id) ?? {};
      if (webOrigin(url) !== one.origin || !this.isFor(one.origin, url)) this.remove(id, one);
    }
    for (const [id, tab] of open) {
      const origin = webOrigin(tab.url ?? "");
      const one = this.tabs.get(id);
      if (one) {
        one.note(tab);
        this.share(one);
      } else if (origin && this.isFor(origin, tab.url!) && this.tabs.size < maxTabs)
        this.share(this.tabs.set(id, new ShownTab(this.user, id, origin, tab)).get(id)!);
    }
    const now = this.list();
    if (now.length !== before.length || now.some((one, i) => one !== before[i])) this.changed();
  }
}
