/**
 * What `pagewire/extension/worker` exports: the documents of an extension's tabs (documents.ts), and a core for each that the extension
 * opens a session with. It is for extensions with agents of their own; ours has its core in the gateway, and no wasm.
 *
 * The core is at the other end of the document's link: this is what bridge/link does elsewhere. It never opens a port of the page's,
 * and what breaks the link ends the document's, with every session.
 */
import { attach } from "../core/edge.ts";
import { compile } from "../core/compile.ts";
import { linkVersion, type PortCore, type PortSource, Status } from "../link/link.ts";
import type { Carrier, Document, Documents, Options, Session } from "../extension.d.ts";
import { documents as keep, type Link, Live } from "./documents.ts";

/** How long a session waits for the page to say what it offers, in ms, so that it sees no empty list. */
const patience = 1_000;
/** How long a document waits whose core has died, in ms. */
const afterDeath = 2_000;
/** URIs whose revision is kept. */
const maxKnown = 10_000;

/** The version of Pagewire; js/build puts it in. */
declare const PAGEWIRE_VERSION: string;

/** Takes the documents that come. To be called when the worker starts, before anything is awaited. */
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
    private served: Promise<Served> | undefined;
    private readonly carriers = new Map<number, Carrier>();
    private last = 0;

    get sessions() {
      return this.carriers.size;
    }

    private ended(reason: string): void {
      this.served = undefined;
      const all = [...this.carriers.values()];
      this.carriers.clear();
      for (const carrier of all) carrier.closed(reason);
    }

    private async serve(): Promise<Served> {
      try {
        return await serve(this, await compiled(), this.carriers, (reason) => this.ended(reason));
      } catch (cause) {
        this.served = undefined; // so that it is tried again
        throw cause;
      }
    }

    async open(carrier: Carrier): Promise<Session> {
      if (this.gone || !this.admitted) throw new Error("pagewire: the document has gone, or may not be read");
      const served = (this.served ??= this.serve());
      const { core } = await served;
      if (served !== this.served) throw new Error("pagewire: the document has gone");
      const id = ++this.last;
      this.carriers.set(id, carrier);
      core.open(id);
      options.changed?.();
      return {
        receive: (text) => this.carriers.has(id) && core.receive(id, text),
        close: () => {
          if (!this.carriers.delete(id)) return;
          core.close(id);
          options.changed?.();
        },
      } as Session;
    }
  }
  return keep(options, Opened);
}

interface Served {
  readonly core: PortCore;
}

/** Starts a core for a document, and waits for what that offers. `ended` is called once, when the core or the link is over. */
async function serve(
  document: Live,
  module: WebAssembly.Module,
  carriers: Map<number, Carrier>,
  ended: (reason: string) => void,
): Promise<Served> {
  const out = outgoing();
  const held = new Map<number, string>();
  const calls = new Map<number, { tool: boolean; uri: string }>();
  const revisions = new Map<string, number>();
  /** What has just come to be watched: the page answers with its revision. */
  const asked = new Set<string>();
  let link: Link | undefined;
  let over = "";

  const end = (reason: string) => {
    if (over) return;
    over = reason;
    link?.close();
    ended(reason);
  };
  const begin = (id: number, tool: boolean, uri: string, ...call: unknown[]) => {
    calls.set(id, { tool, uri });
    out.call(...call);
  };
  const source: PortSource = {
    send: (port, message, call, hole) =>
      carriers
        .get(port)
        ?.deliver(call ? message.slice(0, hole) + (held.get(call) ?? "") + message.slice(hole) : message),
    closed: (port, reason) => {
      const carrier = carriers.get(port);
      carriers.delete(port);
      carrier?.closed(reason);
    },
    read: (id, key, uri, params) => begin(id, false, uri, "read", id, key, uri, params),
    callTool: (id, name, args, unless) => begin(id, true, "", "callTool", id, name, args, unless),
    end: (id) => {
      calls.delete(id);
      held.delete(id);
      out.call("end", id);
    },
    watched: (uri, on) => {
      if (on) asked.add(uri);
      out.call("watched", uri, on);
    },
    report: (message) => out.call("report", message),
    dead: (reason) => {
      console.error(`pagewire: the core of ${document.origin} died: ${reason}`);
      end("the core died");
      setTimeout(() => document.remove(), afterDeath); // the relay calls again
    },
  };
  const core = await attach(source, module, { wasm: "", worker: "", origin: document.origin, tools: true });

  const known = (uri: string, revision: number) => {
    if (revisions.size >= maxKnown) revisions.clear();
    revisions.set(uri, revision);
  };
  /** Passes a change on; but what a page says since it was asked is one only where it is newer than what was read. */
  const touch = (uri: string, revision: number) => {
    const before = revisions.get(uri);
    known(uri, revision);
    if (asked.delete(uri) && (before === undefined || revision <= before)) return;
    core.touch(uri, revision);
  };
  const contents = (frame: string) => {
    const [head = "", id, revision] = /^=(\d{1,16}) (\d{1,16}) /.exec(frame) ?? [];
    if (!head) throw new TypeError("no contents");
    const call = calls.get(Number(id));
    if (!call || held.has(Number(id))) return; // it has been ended, or answered
    if (!call.tool) known(call.uri, Number(revision));
    // A tool's result goes in by its members. What breaks the JSON breaks this page's answer alone.
    const text = call.tool ? frame.slice(head.length + 1, -1) : frame.slice(head.length);
    held.set(Number(id), text);
    core.complete(Number(id), Status.ok, Number(revision), text.length, "");
  };
  let told = (): void => {};
  const first = new Promise<void>((done) => {
    told = done;
    setTimeout(done, patience);
  });
  const hear = (frame: string) => {
    try {
      if (frame[0] === "=") contents(frame);
      else
        for (const call of JSON.parse(frame)) obey(call, core, { touch, known: (id) => calls.has(id), say: out.call });
    } catch (cause) {
      return link!.expel(`a frame that is none of the page layer's: ${(cause as Error).message}`);
    }
    out.flush(true);
    if (!frame.startsWith('[["hello"')) told();
  };
  link = document.link(String(document.tab), {
    frame: hear,
    closed: (reason) => {
      core.stop();
      end(reason);
    },
  });
  out.to(link);
  await first;
  if (over) throw new Error(`pagewire: ${over}`);
  return { core };
}

/** Calls for a page, which go together at the turn's end. */
function outgoing() {
  let link: Link | undefined;
  let queue: unknown[] = [];
  let scheduled = false;
  const flush = (owed?: boolean) => {
    scheduled = false;
    if (!owed && !queue.length) return;
    const calls = queue;
    queue = [];
    link?.say(JSON.stringify(calls));
  };
  return {
    flush,
    to: (given: Link) => void (link = given),
    call: (...call: unknown[]) => {
      queue.push(call);
      if (scheduled) return;
      scheduled = true;
      queueMicrotask(flush);
    },
  };
}

/** Does one call of the page. Throws for what is none. */
function obey(
  call: unknown,
  core: PortCore,
  its: {
    touch(uri: string, revision: number): void;
    known(call: number): boolean;
    say(...call: unknown[]): void;
  },
): void {
  const [name, a, b, c, d] = call as unknown[];
  const text = (value: unknown): string => {
    if (typeof value !== "string") throw new TypeError("no text");
    return value;
  };
  const number = (value: unknown): number => {
    if (!Number.isSafeInteger(value) || (value as number) < 0) throw new TypeError("no such number");
    return value as number;
  };
  switch (name) {
    case "hello":
      if (a !== linkVersion)
        throw new TypeError(`it speaks version ${a} of the link, and this is version ${linkVersion}`);
      return its.say("hello", linkVersion, PAGEWIRE_VERSION, {});
    case "register":
      return core.register(text(a));
    case "unregister":
      return core.unregister(text(a));
    case "touch":
      return its.touch(text(a), number(b));
    case "setTools":
      return core.setTools(text(a));
    case "complete":
      if (number(b) < Status.failed || number(b) > Status.stale) throw new TypeError("no such status");
      if (its.known(number(a))) core.complete(number(a), b as Status, number(c), 0, text(d));
      return;
    case "note":
    case "progress":
      return;
  }
  throw new TypeError(`'${name}' is no call`);
}
