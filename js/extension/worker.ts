/**
 * The module `pagewire/extension/worker`, for extensions with agents of their own: the documents of
 * the tabs (documents.ts), and a core for each document that the extension opens a session with.
 * Pagewire's own extension does not use it: its core is the gateway.
 *
 * The core is at the other end of the document's link, in the place of bridge/link. Only the
 * extension opens its ports, never the page. A frame that breaks the link's rules ends the
 * document, with every session.
 */
import { attach } from "../core/edge.ts";
import { compile } from "../core/compile.ts";
import { now } from "../core/instance.ts";
import { linkVersion, type PortCore, type PortSource, Status } from "../link/link.ts";
import type { Carrier, Document, Documents, Options, Session } from "../extension.d.ts";
import { documents as keep, Live } from "./documents.ts";
import type { Link } from "./transport.ts";

/**
 * How long a session waits for the page's registrations, in ms: so that its first list is not
 * empty.
 */
const patience = 1_000;
/** The pause between the death of a core and the end of its document, in ms. */
const afterDeath = 2_000;
/** The most URIs whose revision is kept. */
const maxKnown = 10_000;

/** The version of Pagewire; js/build puts it in. */
declare const PAGEWIRE_VERSION: string;

/** Begins to serve documents. Call it when the worker starts, before anything is awaited. */
export function documents(options: Options): Documents {
  let module: Promise<WebAssembly.Module> | undefined;
  const compiled = async () => {
    module ??= compile({ wasm: options.wasm ?? chrome.runtime.getURL("pagewire.wasm"), worker: "", origin: "" });
    try {
      return await module;
    } catch (cause) {
      module = undefined;
      throw cause;
    }
  };

  class Opened extends Live implements Document {
    /** From the first session on, until it is over. `started` is its start. */
    private core: DocumentCore | undefined;
    private started: Promise<PortCore> | undefined;

    get sessions() {
      return this.core?.carriers.size ?? 0;
    }

    private async start(core: DocumentCore): Promise<PortCore> {
      try {
        return await core.launch(await compiled());
      } catch (cause) {
        core.finish((cause as Error).message); // so that it is tried again
        throw cause;
      }
    }

    async open(carrier: Carrier): Promise<Session> {
      if (this.gone || !this.admitted) throw new Error("pagewire: the document has gone, or may not be read");
      const core = (this.core ??= new DocumentCore(this, () => {
        this.core = this.started = undefined;
        options.changed?.();
      }));
      const { receive, close } = await (this.started ??= this.start(core));
      if (core !== this.core) throw new Error("pagewire: the document has gone");
      const id = core.open(carrier);
      options.changed?.();
      return {
        receive: (text) => core.carriers.has(id) && receive(id, text),
        close: () => {
          if (!core.carriers.delete(id)) return;
          close(id);
          options.changed?.();
        },
      } as Session;
    }
  }
  return keep(options, Opened);
}

/** A call of the core that the page has not ended. */
interface Call {
  readonly tool: boolean;
  readonly uri: string;
  /** The page's answer, as `send` puts it into messages. */
  held?: string;
}

/** One core and its link with a document. */
class DocumentCore implements PortSource {
  /** By port: the sessions that are open. */
  readonly carriers = new Map<number, Carrier>();
  /** The last port. None is used twice. */
  private last = 0;
  /** There is one from `launch` on, until it dies. */
  private core: PortCore | undefined;
  /** There is one as soon as the core runs. */
  private link: Link | undefined;
  /** Why all is over; "" before that. */
  private over = "";
  /** Calls that the core has not ended, by its ids. */
  private readonly calls = new Map<number, Call>();
  /** URI to the newest revision that the page has told, at most `maxKnown`. */
  private readonly revisions = new Map<string, number>();
  /** URIs whose watch has just begun: the page's answer with their revision has not come. */
  private readonly newlyWatched = new Set<string>();
  /** Calls for the page, which are sent in one frame at the end of the turn. */
  private queue: unknown[] = [];
  private scheduled = false;
  /** Called when the page has sent a frame after its hello: its registrations. */
  private registered = (): void => {};

  /** `ended` is called once, when the core or the link is over. */
  constructor(
    private readonly document: Live,
    private readonly ended: () => void,
  ) {}

  /** Starts the core, and waits for the page's registrations. */
  async launch(module: WebAssembly.Module): Promise<PortCore> {
    const { origin } = this.document;
    const core = (this.core = await attach(this, module, { wasm: "", worker: "", origin, tools: true }));
    const registered = new Promise<void>((done) => {
      this.registered = done;
      setTimeout(done, patience);
    });
    this.link = this.document.link(String, {
      frame: (text) => this.receive(core, text),
      closed: (reason) => this.finish(reason),
    });
    await registered;
    if (this.over) throw new Error(`pagewire: ${this.over}`);
    return core;
  }

  open(carrier: Carrier): number {
    this.carriers.set(++this.last, carrier);
    this.core!.open(this.last);
    return this.last;
  }

  finish(reason: string): void {
    if (this.over) return;
    this.over = reason;
    this.core?.stop();
    this.link?.close();
    this.registered();
    const all = [...this.carriers.values()];
    this.carriers.clear();
    this.ended();
    for (const carrier of all) carrier.closed(reason);
  }

  // Calls of the core.

  send(port: number, message: string, call: number, hole: number): void {
    const text = call ? message.slice(0, hole) + (this.calls.get(call)?.held ?? "") + message.slice(hole) : message;
    this.carriers.get(port)?.deliver(text);
  }

  closed(port: number, reason: string): void {
    const carrier = this.carriers.get(port);
    this.carriers.delete(port);
    carrier?.closed(reason);
  }

  read(id: number, key: string, uri: string, params: string): void {
    this.calls.set(id, { tool: false, uri });
    this.queueCall("read", id, key, uri, params);
  }

  callTool(id: number, name: string, args: string, unless: string): void {
    this.calls.set(id, { tool: true, uri: "" });
    this.queueCall("callTool", id, name, args, unless, now());
  }

  /** Not called: the page's channel answers its own `starting`. */
  start(): void {}

  end(id: number): void {
    this.calls.delete(id);
    this.queueCall("end", id);
  }

  watched(uri: string, on: boolean): void {
    if (on) this.newlyWatched.add(uri);
    else this.newlyWatched.delete(uri);
    this.queueCall("watched", uri, on);
  }

  report(message: string): void {
    this.queueCall("report", message);
  }

  dead(reason: string): void {
    console.error(`pagewire: the core of ${this.document.origin} died: ${reason}`);
    this.core = undefined; // so that `finish` does not stop it
    this.finish("the core died");
    setTimeout(() => this.document.remove(), afterDeath); // the relay connects again
  }

  private queueCall(...call: unknown[]): void {
    this.queue.push(call);
    if (this.scheduled) return;
    this.scheduled = true;
    queueMicrotask(() => this.queue.length && this.flush());
  }

  private flush(): void {
    this.scheduled = false;
    const calls = this.queue;
    this.queue = [];
    this.link?.send(JSON.stringify(calls));
  }

  // Frames of the page.

  private receive(core: PortCore, frame: string): void {
    try {
      if (frame[0] === "=") this.contents(core, frame);
      else for (const call of JSON.parse(frame)) this.perform(core, call);
    } catch {
      return this.link!.refuse("a frame that the page layer does not send");
    }
    this.flush(); // each frame is answered
    if (!frame.startsWith('[["hello"')) this.registered();
  }

  private contents(core: PortCore, frame: string): void {
    const [head, id, revision] = /^=(\d{1,15}) (\d{1,15}) /.exec(frame) ?? [];
    if (!head) throw new TypeError("no contents");
    const call = this.calls.get(Number(id));
    if (!call || call.held !== undefined) return; // it has been ended, or answered
    if (!call.tool) this.setRevision(call.uri, Number(revision));
    // The answer gets a tool's result without its braces. Text that is not JSON breaks only the
    // answer of this page.
    call.held = call.tool ? frame.slice(head.length + 1, -1) : frame.slice(head.length);
    core.complete(Number(id), Status.ok, Number(revision), call.held.length, "");
  }

  private setRevision(uri: string, revision: number): void {
    if (this.revisions.size >= maxKnown) this.revisions.clear();
    this.revisions.set(uri, revision);
  }

  /**
   * Passes a change on. The answer to `watched` is a change only if it is newer than the contents
   * that were read.
   */
  private touch(core: PortCore, uri: string, revision: number): void {
    const before = this.revisions.get(uri);
    this.setRevision(uri, revision);
    if (this.newlyWatched.delete(uri) && (before === undefined || revision <= before)) return;
    core.touch(uri, revision);
  }

  /** Performs one call of the page. Throws for anything else. */
  private perform(core: PortCore, call: unknown): void {
    const [name, a, b, c, d] = call as unknown[];
    switch (name) {
      case "hello":
        if (a !== linkVersion) throw new TypeError(`version ${a} of the link, where this is ${linkVersion}`);
        return this.queueCall("hello", linkVersion, PAGEWIRE_VERSION, { now: now() });
      case "register":
        return core.register(text(a));
      case "unregister":
        return core.unregister(text(a));
      case "touch":
        return this.touch(core, text(a), number(b));
      case "setTools":
        return core.setTools(text(a));
      case "complete": {
        const status = number(b);
        if (status < Status.failed || status > Status.stale) throw new TypeError("no such status");
        if (this.calls.has(number(a))) core.complete(a as number, status, number(c), 0, text(d));
        return;
      }
      case "starting":
        return this.calls.has(number(a)) ? this.queueCall("start", a, now()) : this.queueCall("end", a);
      case "started":
      case "note":
      case "progress":
      case "bye":
        return;
    }
    throw new TypeError("no call");
  }
}

function text(value: unknown): string {
  if (typeof value !== "string") throw new TypeError("no text");
  return value;
}

function number(value: unknown): number {
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw new TypeError("no such number");
  return value as number;
}
