/**
 * The documents that an extension's service worker has, and a core for each that somebody wants: what `pagewire/extension/worker`
 * exports. The other side of a document is relay.ts, and behind that page.ts.
 *
 * Which origin, tab and frame a document is the browser says, in the port's sender; what comes over the port is data. A
 * document whose origin is not admitted has no core, and nothing of it is kept but how much it says it offers. What breaks the
 * protocol, floods it, or comes from somewhere else is refused: the port is closed, counted and logged, and no other document
 * notices.
 */
import { attach } from "../core/edge.ts";
import { compile } from "../core/compile.ts";
import { type Core, type Page, Status } from "../core/link.ts";
import type { Carrier, Document, Documents, Options, Session } from "../extension.d.ts";
import { type Call, fromRelay, look, type Note, type ToRelay } from "./words.ts";

/** Ports of the page are below, ours from here on. */
const firstOwn = 1 << 30;
/** The longest text that a document may say at once, in UTF-16 code units: an engine gives out 16 MiB of contents at most. */
const maxText = 40 << 20;
/** Messages that a document may send in a second, and at once. A page's own layer sends 1,000 updates in a second at most. */
const rate = 5_000;
const burst = 10_000;
/** Documents that are kept, and those of one tab. */
const maxDocuments = 1024;
const maxPerTab = 128;
/** How long a document waits whose core has died, in ms. */
const afterDeath = 2_000;
const maxTitle = 1024;
/** How long a session waits for the page to say what it offers, in ms, so that it sees no empty list. */
const patience = 1_000;
/** How often at most a person is shown what reads change, in ms. */
const pace = 200;

/** Takes the documents that come. To be called when the worker starts, before anything is awaited. */
export function documents(options: Options): Documents {
  const all = new Map<number, Live>();
  const refused = new Map<string, number>();
  let last = 0;
  let attended = false;
  let module: Promise<WebAssembly.Module> | undefined;

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
  /** The same for what only a person looks at, and what reads make many times a second. */
  let stirred = false;
  const stir = () => {
    if (stirred) return;
    stirred = true;
    setTimeout(() => {
      stirred = false;
      changed();
    }, pace);
  };
  const compiled = async () => {
    module ??= compile({ wasm: options.wasm ?? chrome.runtime.getURL("pagewire.wasm"), worker: "", origin: "" });
    try {
      return await module;
    } catch (cause) {
      module = undefined;
      throw cause;
    }
  };

  class Live implements Document {
    readonly id = ++last;
    frame = "";
    url: string;
    title = "";
    focused = 0;
    offers = 0;
    admitted = false;
    resources = new Map<string, string>();
    watched = new Set<string>();
    tools = 0;
    reads = 0;
    lastRead = 0;
    gone = false;

    private starting: Promise<Core> | undefined;
    /** Counts what was ended, so that a core that was being started then is not taken. */
    private ended = 0;
    private core: Core | undefined;
    private readonly own = new Map<number, Carrier>();
    private lastOwn = firstOwn;
    /** Calls for the page that wait for the turn's end. */
    private out: Call[] = [];
    private scheduled = false;
    /** Calls of the core that the page has not ended to have, and whether they are a tool's. */
    private readonly calls = new Map<number, boolean>();
    /** What the page has answered to those. */
    private readonly held = new Map<number, string>();
    /** Called when the page layer has said something: first of all it says what the page offers, in one piece. */
    private told = (): void => {};
    private tokens = burst;
    private filled = performance.now();

    constructor(
      private readonly port: chrome.runtime.Port,
      readonly tab: number,
      readonly frameId: number,
      readonly origin: string,
    ) {
      this.url = origin + "/";
    }

    get sessions() {
      return this.own.size;
    }

    say(message: ToRelay): void {
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
      if (message.length > maxText) return this.expel("a message is too long");
      const { core } = this;
      if (!core) return; // it was ended while this was on its way
      try {
        if (message[0] === "k") this.keep(core, message);
        else if (message[0] === "l") {
          const calls: unknown = JSON.parse(message.slice(1));
          if (!Array.isArray(calls)) throw new TypeError("no array");
          for (const call of calls) this.run(core, call);
        } else throw new TypeError("neither calls nor contents");
      } catch {
        return this.expel("a message that is none of the page layer's");
      }
      this.flush(true);
      this.told();
    }

    private note(message: unknown): void {
      if (typeof message !== "object" || message === null) return this.expel("a message that is none of the relay's");
      const { offers, frame, url, title, focused } = message as Note;
      if (Number.isSafeInteger(offers) && offers! >= 0) this.offers = offers!;
      if (typeof frame === "string" && /^(\d{1,4}(\.\d{1,4}){0,7})?$/.test(frame)) this.frame = frame;
      if (typeof url === "string" && url.length <= 8192 && url.startsWith(this.origin + "/")) this.url = url;
      if (typeof title === "string") this.title = title.slice(0, maxTitle);
      if (typeof focused === "number" && focused > this.focused) this.focused = Math.min(focused, Date.now());
      changed();
    }

    /** A call of the link. Throws for what is none. */
    private run(core: Core, call: unknown): void {
      const [name, a, b, c] = call as unknown[];
      const text = (value: unknown): string => {
        if (typeof value !== "string") throw new TypeError("no text");
        return value;
      };
      const number = (value: unknown, least: number, below: number): number => {
        if (!Number.isSafeInteger(value) || (value as number) < least || (value as number) >= below)
          throw new TypeError("no such number");
        return value as number;
      };
      const pagePort = () => number(a, 1, firstOwn);
      switch (name) {
        case "register": {
          const { uri, name = "", title } = JSON.parse(text(a)) as { uri?: unknown; name?: unknown; title?: unknown };
          if (this.resources.size < 10_000) this.resources.set(text(uri), text(title ?? name));
          stir();
          return core.register(text(a));
        }
        case "unregister":
          this.resources.delete(text(a));
          stir();
          return core.unregister(text(a));
        case "touch":
          return core.touch(text(a));
        case "setTools": {
          const tools: unknown = JSON.parse(text(a));
          this.tools = Array.isArray(tools) ? tools.length : 0;
          changed();
          return core.setTools(text(a));
        }
        case "open":
          return core.open(pagePort());
        case "receive":
          return core.receive(pagePort(), text(b));
        case "writable":
          return core.writable(pagePort(), b === true);
        case "close":
          return core.close(pagePort());
        case "complete": {
          const id = number(a, 0, Number.MAX_SAFE_INTEGER);
          if (this.calls.has(id)) core.complete(id, number(b, Status.failed, Status.invalid + 1), 0, text(c));
          return;
        }
      }
      throw new TypeError("no call of the link");
    }

    /** Contents: "k", the call's number, a colon, JSON text. */
    private keep(core: Core, message: string): void {
      const colon = message.indexOf(":");
      const id = Number(message.slice(1, colon));
      if (colon < 2 || !Number.isSafeInteger(id)) throw new TypeError("no call's number");
      const tool = this.calls.get(id);
      if (tool === undefined || this.held.has(id)) return; // it has been ended, or answered
      // A tool's result goes in by its members. Contents are not parsed here: what breaks them breaks this page's answer, and
      // the gateway, which parses it, says whose it was.
      const text = tool ? message.slice(colon + 2, -1) : message.slice(colon + 1);
      this.held.set(id, text);
      core.complete(id, Status.ok, text.length, "");
    }

    private call(...call: unknown[]): void {
      this.out.push(call);
      if (this.scheduled) return;
      this.scheduled = true;
      queueMicrotask(() => this.flush());
    }

    private flush(owed?: boolean): void {
      this.scheduled = false;
      if (!owed && !this.out.length) return;
      const { out } = this;
      this.out = [];
      if (this.core) this.say(out);
    }

    /** The core, which is started if there is none. */
    private need(): Promise<Core> {
      return (this.starting ??= this.start());
    }

    private async start(): Promise<Core> {
      const { ended } = this;
      let core: Core | undefined;
      let dead = "";
      const live = () => core !== undefined && core === this.core;
      const page: Page = {
        send: (port, message, call, hole) => {
          if (port < firstOwn) return this.call("send", port, message, call, hole);
          const text = call ? message.slice(0, hole) + (this.held.get(call) ?? "") + message.slice(hole) : message;
          this.own.get(port)?.deliver(text);
        },
        read: (id, key, uri, params) => {
          this.calls.set(id, false);
          this.reads++;
          this.lastRead = Date.now();
          this.call("read", id, key, uri, params);
          stir();
        },
        callTool: (id, name, args) => {
          this.calls.set(id, true);
          this.call("callTool", id, name, args);
        },
        end: (id) => {
          this.calls.delete(id);
          this.held.delete(id);
          this.call("end", id);
        },
        watched: (uri, on) => {
          if (on) this.watched.add(uri);
          else this.watched.delete(uri);
          this.call("watched", uri, on);
          stir();
        },
        closed: (port, reason) => {
          if (port < firstOwn) return this.call("closed", port, reason);
          const carrier = this.own.get(port);
          this.own.delete(port);
          carrier?.closed(reason);
          changed();
        },
        report: (message) => this.call("report", message),
        dead: (reason) => {
          dead = reason;
          if (!live()) return;
          console.error(`pagewire: the core of ${this.origin} died: ${reason}`);
          this.core = undefined; // it is not to be stopped
          this.halt("the core died");
          setTimeout(() => this.remove(), afterDeath); // the relay calls again
        },
      };
      try {
        core = await attach(page, await compiled(), { wasm: "", worker: "", origin: this.origin, tools: true });
        if (dead || ended !== this.ended) {
          core.stop();
          throw new Error(dead || "the document has gone, or may no longer be read");
        }
      } catch (cause) {
        if (ended === this.ended) this.starting = undefined; // so that it is tried again
        throw cause;
      }
      this.core = core;
      const told = new Promise<void>((done) => {
        this.told = done;
        setTimeout(done, patience);
      });
      this.say("start");
      await told;
      return core;
    }

    async open(carrier: Carrier): Promise<Session> {
      if (this.gone || !this.admitted) throw new Error("pagewire: the document has gone, or may not be read");
      const core = await this.need();
      if (core !== this.core) throw new Error("pagewire: the document has gone");
      const id = this.lastOwn++;
      this.own.set(id, carrier);
      core.open(id);
      changed();
      return {
        receive: (text) => this.own.has(id) && core.receive(id, text),
        close: () => {
          if (!this.own.delete(id)) return;
          core.close(id);
          changed();
        },
      } as Session;
    }

    /** Ends the core, and every session with it. */
    halt(reason: string): void {
      const { core } = this;
      this.ended++;
      const own = [...this.own.values()];
      this.own.clear();
      this.core = this.starting = undefined;
      core?.stop();
      this.calls.clear();
      this.held.clear();
      this.resources.clear();
      this.watched.clear();
      this.tools = 0;
      this.out = [];
      this.say(null);
      for (const carrier of own) carrier.closed(reason);
      changed();
    }

    private expel(why: string): void {
      this.say(null);
      refuse(why, `a document of ${this.origin} in tab ${this.tab}`);
      this.remove();
    }

    /** Lets the document go, by our decision or because it has gone. */
    remove(): void {
      if (this.gone) return;
      this.gone = true;
      all.delete(this.id);
      this.halt("the page has gone");
      this.port.disconnect();
      changed();
    }

    /** Asks whether the document is admitted, and acts on that. */
    async judge(): Promise<void> {
      const admitted = (await options.admits(this.origin)) === true;
      if (this.gone) return;
      const was = this.admitted;
      this.admitted = admitted;
      if (was && !admitted) this.halt("the user has withdrawn what was allowed");
      this.dismiss();
      changed();
    }

    /** Has the relay of a document that is not admitted hang up, and be quiet until it is told to look. */
    dismiss(): void {
      if (!this.admitted && !attended) this.say("wait");
    }
  }

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
    const document = new Live(port, tab.id, frameId, origin);
    all.set(document.id, document);
    port.onMessage.addListener((message) => document.hear(message));
    port.onDisconnect.addListener(() => {
      void chrome.runtime.lastError;
      document.remove();
    });
    void document.judge();
  });
  // Nobody but our own pages has a word here. Without a listener the browser would refuse as well, but nobody would know.
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
