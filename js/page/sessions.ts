/**
 * The part of the page layer that comes with the core: the core's life (started, given what the page has, replaced
 * when it dies) and the ports, one MCP session each.
 *
 * A core's failure never reaches the page's code as an exception: ports close with a reason, and an event says so.
 * Page code (carriers, listeners, reads) runs in microtasks, never on the core's stack. Port ids are never used twice,
 * also across cores. An open port always has a live core: opening waits for it, so nothing is queued here.
 */
import type { Core, Page } from "../core/link.ts";
import {
  closePort,
  error,
  listen,
  messageData,
  microtask,
  parse,
  postToPort,
  SafeMap,
  setKit,
  slice,
  startPort,
  stringify,
  unlisten,
} from "./late.ts";
import { answersOf } from "./answers.ts";
import { jsonText } from "./contents.ts";
import { envelopes } from "./envelope.ts";
import { gateway } from "./gateway.ts";
import { pageTools } from "./pagetools.ts";
import { readsOf } from "./reads.ts";
import { toolbox } from "./toolbox.ts";
import type { Carrier, Ground, Port, Sessions } from "./shared.ts";

/** A core that dies three times within ten seconds is not started again until somebody connects. */
const maxDeaths = 3;
const deathWindow = 10_000;

export function sessions(ground: Ground): Sessions {
  setKit(ground.kit);
  const { shared, settings, emit } = ground;
  const { stats } = shared;
  const reads = readsOf(ground);
  const tools = pageTools(ground);
  const box = toolbox(ground);
  /** URIs that somebody watches. */
  const watched = new SafeMap<string, boolean>();
  const ports = new SafeMap<number, Carrier>();
  let lastPort = 0;
  /** The start that runs, if any. */
  let starting: Promise<Core> | undefined;
  /** When the last cores died, newest first. */
  let deaths: number[] = [];
  let over = "";

  async function start(): Promise<Core> {
    let own: Core | undefined;
    let dead = "";
    /** Whether what it asks for still counts. */
    const live = () => !dead && own === shared.core;
    const page: Page = {
      send: (port, message, call, hole) => live() && send(port, message, call, hole),
      read: (call, key, uri, params) => live() && reads.begin(call, key, uri, params),
      callTool: (call, name, args) => live() && tools.begin(call, name, args),
      end(call) {
        if (!live()) return;
        reads.end(call);
        tools.end(call);
      },
      watched(uri, on) {
        if (!live()) return;
        if (on) watched.set(uri, true);
        else watched.delete(uri);
        stats.watched = watched.size;
      },
      closed: (port, reason) => live() && drop(port, reason, false),
      report: (message) => error("pagewire: " + message),
      dead(reason) {
        const ours = live() && own;
        dead ||= reason || "for an unknown reason";
        if (ours) died(dead);
      },
    };
    stats.core = "loading";
    try {
      settings.tools = tools.prepare();
      const started = await ground.start(page, settings);
      await tools.looked();
      if (over) started.stop();
      if (dead || over) throw new Error(dead || over);
      own = shared.core = started;
      stats.core = "ready";
    } catch (cause) {
      stats.core = "none";
      throw over ? new Error(over) : ground.failed(cause);
    } finally {
      starting = undefined;
    }
    shared.entries.forEach((entry) => live() && own!.register(entry.descriptor));
    if (live()) tools.replay();
    if (live()) emit(stats.deaths ? "corerestart" : "ready", {});
    return own;
  }

  function died(reason: string): void {
    const wanted = ports.size > 0;
    stats.deaths++;
    emit("coredead", { reason });
    forget(`pagewire: the core died (${reason}); connect again`, true);
    const now = Date.now();
    deaths = [now, deaths[0] ?? 0, deaths[1] ?? 0];
    if (now - deaths[maxDeaths - 1]! < deathWindow) {
      const message = `pagewire: the core died ${maxDeaths} times within ${deathWindow / 1000} s, the last time ${reason}. It is started again when somebody connects.`;
      error(message);
      emit("error", { message });
    } else if (wanted) need().catch(() => {}); // it has been reported
  }

  /** Gives the core up, with all that belonged to it. */
  function forget(reason: string, failure: boolean): void {
    shared.core = undefined;
    stats.core = "none";
    stats.watched = 0;
    watched.clear();
    reads.endAll();
    tools.endAll();
    ports.forEach((_, id) => drop(id, reason, failure));
  }

  const need = async () => shared.core ?? (await (starting ??= start()));

  function send(id: number, message: string, call: number, hole: number): void {
    const carrier = ports.get(id);
    if (!carrier) return;
    const fill = (text: string) => slice(message, 0, hole) + text + slice(message, hole);
    const result = call && tools.resultOf(call);
    if (carrier.text) {
      // Nothing is parsed only to be made text again.
      const text = result ? fill(result) : call ? fill(jsonText(reads.contentsOf(call))) : message;
      return microtask(() => carrier.deliver(text));
    }
    let object: { result: { contents: unknown } };
    if (result) object = parse(fill(result));
    else if (call) {
      object = parse(fill("[]"));
      object.result.contents = reads.contentsOf(call);
    } else object = parse(message);
    microtask(() => carrier.deliver(object));
  }

  /** Ends a port on our side; the core knows, or is no more. */
  function drop(id: number, reason: string, failure: boolean): void {
    const carrier = ports.get(id);
    if (!carrier) return;
    ports.delete(id);
    stats.ports = ports.size;
    microtask(() => carrier.closed(reason, failure));
    emit("portclose", { port: id, reason });
  }

  async function open(carrier: Carrier): Promise<Port> {
    const core = await need();
    if (core !== shared.core) throw ground.failed("it died at once"); // no loop: it would die again
    const id = ++lastPort;
    ports.set(id, carrier);
    stats.ports = ports.size;
    core.open(id);
    return {
      receive: (text) => ports.has(id) && shared.core!.receive(id, text),
      writable: (on) => ports.has(id) && shared.core!.writable(id, on),
      close(reason) {
        if (!ports.has(id)) return;
        drop(id, reason, false);
        shared.core!.close(id);
      },
    } as Port;
  }

  /**
   * `{type: "pagewire:close"}`, from either side, ends a MessagePort's session. It is the only message that is no
   * JSON-RPC, and it is needed: Chromium 156 has no `close` event on ports, so neither side would learn of the other's
   * close().
   */
  async function serve(port: MessagePort, source: MessageEventSource | null): Promise<void> {
    // A frame or window that leaves takes its end of the port with it and cannot say so. A frozen one (bfcache) keeps it.
    // One of another origin cannot be listened to: its port is given up when there is something to say to a window that
    // is closed.
    const elsewhere = source === globalThis.window ? null : (source as Window | null);
    const onpagehide = (event: PageTransitionEvent) => event.persisted || close("its window is gone");
    const closed = (reason: string) => {
      try {
        if (elsewhere) unlisten(elsewhere, "pagehide", onpagehide);
      } catch {}
      postToPort(port, { type: "pagewire:close", reason });
      closePort(port);
    };
    let gone = "";
    let close = (reason: string): void => {
      gone ||= reason;
    };
    try {
      if (elsewhere) listen(elsewhere, "pagehide", onpagehide);
    } catch {}
    try {
      const deliver = (message: object) =>
        elsewhere?.closed ? close("its window is gone") : postToPort(port, message);
      const session = await open({ deliver, closed });
      close = session.close;
      if (gone) return close(gone);
      listen(port, "message", (event: MessageEvent) => {
        const data = messageData(event);
        if ((data as { type?: unknown } | null | undefined)?.type === "pagewire:close") close("closed by the client");
        else session.receive(toText(data));
      });
      listen(port, "messageerror", () => session.receive("undeserialisable"));
      listen(port, "close", () => close("closed by the client"));
      startPort(port); // until here the browser has kept its messages
    } catch (cause) {
      closed((cause as Error).message);
    }
  }

  const answers = answersOf(ground, reads, open);
  let outside: ReturnType<typeof gateway> | undefined;
  // What a frozen page's timers and servers missed is unknown: after it has come back (bfcache), all who watch or wait
  // are told. When it goes for good, those in other windows are.
  const onpageshow = ({ persisted }: PageTransitionEvent) => {
    if (!persisted) return;
    watched.forEach((_, uri) => shared.core?.touch(uri));
    answers.thawed();
  };
  const onpagehide = ({ persisted }: PageTransitionEvent) => {
    const { core } = shared;
    if (persisted) return;
    forget("the page was left", false);
    core?.stop();
  };
  listen(globalThis.window, "pageshow", onpageshow);
  listen(globalThis.window, "pagehide", onpagehide);

  return {
    need,
    open,
    serve,
    answer: answers.answer,
    tool: box.tool,
    envelope: envelopes(ground, open),
    warmUp: async (core) => (core ? void (await need()) : (outside ??= gateway(ground, open)).dial()),
    shutDown(reason) {
      unlisten(globalThis.window, "pageshow", onpageshow);
      unlisten(globalThis.window, "pagehide", onpagehide);
      tools.shutDown();
      box.shutDown();
      over = reason;
      forget(reason, false);
      outside?.shutDown(); // its port is closed
    },
  };
}

/** JSON text of whatever a client posted. What has none becomes text that is no JSON, so that the core answers -32700. */
export function toText(message: unknown): string {
  try {
    return stringify(message) ?? "undefined";
  } catch {
    return "unserialisable";
  }
}
