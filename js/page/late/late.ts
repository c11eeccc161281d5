/**
 * The part of the page layer that comes with the first agent. It joins the other folders, and has
 * the life of the core that serves agents in the page (its start, its registrations, its
 * replacement), and that core's ports, one MCP session each.
 *
 * A core's failure never reaches the page's code as an exception: ports close with a reason, and an
 * event says so. Page code (carriers, listeners, reads) runs in microtasks, never on the core's
 * stack. Port ids are never used twice, also across cores. An open port always has a live core:
 * opening waits for it, so nothing is queued here.
 */
import { modelContextTools } from "../webmcp/modelcontext.ts";
import { jsonText, type Item } from "../resources/contents.ts";
import { report } from "../common/report.ts";
import { gateway } from "../gateway/gateway.ts";
import type { PortCore } from "../../link/link.ts";
import type { Carrier, Early, Port, Late } from "../early/shared.ts";
import { type Attachment, coresOf } from "../cores/cores.ts";
import { envelopes } from "./envelope.ts";
import { servePort } from "./messageport.ts";
import { connect } from "./transport.ts";
import { revisionsOf } from "../resources/revisions.ts";
import { inMCP, resourceTools } from "../webmcp/resourcetools.ts";
import { discovery } from "../webmcp/discovery.ts";
import { guardOf } from "../webmcp/guard.ts";
import { isObject } from "../early/basics.ts";
import { listen, microtask, parse, SafeAbortController, SafeMap, keep, slice } from "../common/intrinsics.ts";

/** A core that dies three times within ten seconds is not started again until an agent connects. */
const maxDeaths = 3;
const deathWindow = 10_000;

export function arrive(early: Early): Late {
  keep(early.kept);
  const { shared, settings, emit } = early;
  const { stats } = shared;
  const revisions = revisionsOf(shared);
  settings.epoch = revisions.epoch;
  const cores = coresOf(early, revisions);
  const box = modelContextTools(early);
  /** Ports that are open at the local core, which is there as long as one is. */
  const ports = new SafeMap<number, Carrier>();
  /** No number is used twice, also across cores. */
  let lastPort = 0;
  /** The core that serves agents in the page. */
  let local: { core: PortCore; attachment: Attachment } | undefined;
  /** The start that runs, if any. */
  let starting: Promise<PortCore> | undefined;
  /** When the last cores died, newest first. */
  let deaths: number[] = [];
  /** Why the page layer was shut down, for good; "" before that. */
  let over = "";
  /** Its signal removes all listeners. */
  const end = new SafeAbortController();

  async function start(): Promise<PortCore> {
    let dead = "";
    const attachment = cores.attach(
      (reason) => {
        dead = reason;
        if (local?.attachment === attachment) died(reason);
      },
      { send, closed: (port, reason) => drop(port, reason, false) },
    );
    stats.core = "loading";
    try {
      settings.tools = cores.tools.prepare();
      const core = await early.start(attachment.source, settings);
      await cores.tools.listed();
      if (over) core.stop();
      if (dead || over) throw new Error(dead || over);
      local = { core, attachment };
      stats.core = "ready";
      attachment.adopt(core);
      if (local) emit(stats.deaths ? "corerestart" : "ready", {});
      return core;
    } catch (cause) {
      attachment.detach();
      stats.core = "none";
      await 0; // a start that fails at once must not be kept as the one that runs
      throw over ? new Error(over) : early.failed(cause);
    } finally {
      starting = undefined;
    }
  }

  function died(reason: string): void {
    const wanted = ports.size > 0;
    stats.deaths++;
    emit("coredead", { reason });
    forget(`pagewire: the core died (${reason}); connect again`, true);
    const now = Date.now();
    deaths = [now, deaths[0] ?? 0, deaths[1] ?? 0];
    if (now - deaths[maxDeaths - 1]! < deathWindow) {
      report(
        early,
        `the core died ${maxDeaths} times within ${deathWindow / 1000} s, the last time ${reason}. It is started again when an agent connects.`,
      );
    } else if (wanted) need().catch(() => {}); // it has been reported
  }

  /** Gives up the local core and its ports. */
  function forget(reason: string, failure: boolean): void {
    local?.attachment.detach();
    local = undefined;
    stats.core = "none";
    ports.forEach((_, id) => drop(id, reason, failure));
  }

  const need = async () => local?.core ?? (await (starting ??= start()));

  function send(id: number, message: string, call: number, hole: number): void {
    const carrier = ports.get(id);
    if (!carrier || !local) return;
    const fill = (text: string) => slice(message, 0, hole) + text + slice(message, hole);
    const held = call ? local.attachment.held(call) : undefined;
    if (carrier.text) {
      // Spliced, since the carrier takes text: nothing is parsed.
      const text = !held ? message : fill("text" in held ? held.text : jsonText(held.contents as Item[]));
      return microtask(() => carrier.deliver(text));
    }
    let object: { result: { contents: unknown } };
    if (!held) object = parse(message);
    else if ("text" in held) object = parse(fill(held.text));
    else {
      object = parse(fill("[]"));
      object.result.contents = held.contents;
    }
    microtask(() => carrier.deliver(object));
  }

  /**
   * Ends a port on the page's side only. The core has ended it, or is dead, or the caller ends it
   * there.
   */
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
    if (core !== local?.core) throw early.failed("it died at once"); // no loop: it would die again
    const id = ++lastPort;
    ports.set(id, carrier);
    stats.ports = ports.size;
    core.open(id);
    return {
      receive: (text) => ports.has(id) && local!.core.receive(id, text),
      writable: (on) => ports.has(id) && local!.core.writable(id, on),
      close(reason) {
        if (!ports.has(id)) return;
        drop(id, reason, false);
        local!.core.close(id);
      },
    } as Port;
  }

  const answers = resourceTools(early, revisions, cores.reads, open);
  // Without a prototype: a page could observe the browser's lookups in Object.prototype.
  const until = { __proto__: null, signal: end.signal } as AddEventListenerOptions;
  const gateways = gateway(early, revisions, cores, until);
  const guard = guardOf(revisions, answers, cores.tools);
  const discover = discovery(early, cores.tools, until);
  // A page that was frozen (bfcache) may have missed changes: when it comes back, all its watchers
  // are notified. When it unloads for good, its ports close, since their clients may be in other
  // windows.
  const onpageshow = ({ persisted }: PageTransitionEvent) => {
    if (!persisted) return;
    answers.thawed();
    cores.thaw();
  };
  const onpagehide = ({ isTrusted, persisted }: PageTransitionEvent) => {
    if (persisted || !isTrusted) return; // a script's own event leaves no page
    const core = local?.core;
    forget("the page was left", false);
    core?.stop();
  };
  listen(globalThis.window, "pageshow", onpageshow, until);
  listen(globalThis.window, "pagehide", onpagehide, until);

  return {
    need,
    connect: (transport) => connect(transport, open),
    serve: (port, source) => servePort(port, source, open),
    answer: async (name, input, signal) => inMCP(await answers.answer(name, input, signal)),
    guard,
    tool: box.tool,
    envelope: envelopes(early, open),
    async warmUp(whom) {
      if (isObject(whom) && typeof whom !== "function") await discover(whom);
      else if (whom) gateways.dial(whom);
      else await need();
    },
    shutDown(reason) {
      end.abort();
      cores.tools.shutDown();
      box.shutDown();
      over = reason;
      forget(reason, false);
      gateways.shutDown();
    },
  };
}
