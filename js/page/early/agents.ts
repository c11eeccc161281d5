/**
 * The part of serving agents that every page carries: pagewire.connect(), ports and envelopes
 * posted to the window, and the import of dist/pagewire.core.js when the first agent comes. The
 * rest is in late.ts, which that file contains.
 *
 * It never fetches anything before it is asked to, and never throws into a page's event loop. A
 * failure is logged, closes the waiting port, and dispatches an `error` event.
 */
import type { PagewireTransport } from "../../pagewire.d.mts";
import { isObject } from "./basics.ts";
import {
  closePort,
  error,
  listen,
  messageData,
  messageOrigin,
  messagePorts,
  messageSource,
  microtask,
  postToPort,
  postToWindow,
  stringify,
  unlisten,
  warn,
} from "./intrinsics.ts";
import { load, preload } from "./load.ts";
import type { Gateway, Early, Late, Session } from "./shared.ts";

/** `early` is the input of late.ts without the two members that this file adds. */
export function agentsOf(early: Omit<Early, "start" | "failed">) {
  const { settings, emit, shared } = early;
  let loaded: Promise<Late> | undefined;

  const failed = (cause: unknown) => {
    const message = `pagewire: no core from ${settings.core}: ${cause}. Are its files together?`;
    error(message);
    emit("error", { message, cause });
    return new Error(message);
  };

  const begin = async () => {
    try {
      const { arrive, start } = await load(settings);
      return arrive({ ...early, failed, start }) as Late;
    } catch (cause) {
      loaded = undefined; // Chromium fetches a failed file again
      shared.stats.core = "none";
      throw failed(cause);
    }
  };
  /**
   * Loads the late part. With `core`, the wasm is fetched together with the loader, not after it.
   */
  const arrive = async (core?: boolean) => {
    const { stats } = shared;
    if (core && stats.core === "none") {
      stats.core = "loading";
      void preload(settings);
    }
    return await (loaded ??= begin());
  };
  return {
    arrive,

    /**
     * Loads the late part, which then connects to the gateway, or answers chrome-devtools-mcp's
     * devtoolstooldiscovery. Without either it starts the core.
     */
    async warmUp(whom?: Gateway | Event): Promise<void> {
      try {
        await (await arrive(!whom)).warmUp(whom);
      } catch {} // it has been reported
    },

    /**
     * Answers a call of one of the tools of page/resourcetools.ts. That fetches the loader, but no
     * wasm.
     */
    async answer(name: string, input: unknown, signal: AbortSignal | undefined): Promise<object> {
      try {
        return await (await arrive()).answer(name, input, signal);
      } catch (cause) {
        return { isError: true, content: [{ type: "text", text: (cause as Error).message }] };
      }
    },

    async shutDown(reason: string): Promise<void> {
      const { core } = shared;
      shared.core = undefined;
      core?.stop();
      try {
        (await loaded)?.shutDown(reason);
      } catch {} // it has been reported
    },

    /**
     * Accepts two kinds of messages that are posted to the window:
     *
     *   - `{type: "pagewire:connect"}` with one MessagePort, on which JSON-RPC objects travel, from scripts, frames and
     *     windows of the page's own origin and of those that the option `origins` lists;
     *   - the envelope of @mcp-b's tab transport, from the page's own window only. Pagewire does not answer it if there
     *     is another server: `foreign` is set, or that server has announced that it is ready.
     *
     * Nothing is posted before a client asks: the page's other listeners get it too, and some parse
     * every message. Returns a function that stops accepting.
     */
    accept(foreign?: boolean): () => void {
      const { origin } = settings;
      const ready = "mcp-server-ready";
      let silent = foreign;
      /**
       * How many of Pagewire's own `ready` messages have yet to arrive here: each message of the
       * window does.
       */
      let readies = 0;
      let asked = false;
      const say = (payload: string) =>
        silent || postToWindow({ channel: "mcp-default", type: "mcp", direction: "server-to-client", payload }, origin);

      const onport = async (port: MessagePort, source: MessageEventSource | null) => {
        try {
          await (await arrive(true)).serve(port, source);
        } catch (cause) {
          postToPort(port, { type: "pagewire:close", reason: (cause as Error).message });
          closePort(port);
        }
      };
      const onenvelope = async (direction: unknown, payload: unknown) => {
        if (silent) return;
        if (direction === "server-to-client" && !readies--) {
          silent = true;
          warn("pagewire: another MCP server answers on 'mcp-default'.");
        }
        if (direction !== "client-to-server") return;
        asked = true;
        try {
          const sessions = await arrive(true);
          if (payload !== "mcp-check-ready") return await sessions.envelope(payload);
          await sessions.need();
          if (!silent) readies++;
          say(ready);
        } catch {
          // The failure has been reported. This keeps clients from waiting for a server that will
          // not come.
          say("mcp-server-stopped");
        }
      };
      const onmessage = (event: MessageEvent) => {
        if (!event.isTrusted) return; // a script can make up an origin
        const data = messageData(event);
        if (!isObject(data)) return;
        const { type, channel, direction, payload } = data as { [member: string]: unknown };
        // Pagewire's own answers arrive here too. They end here, since reading origin and source
        // takes time.
        if (direction === "server-to-client" && payload !== ready) return;
        const from = messageOrigin(event);
        const source = messageSource(event);
        // Every opaque origin is called "null": equal names, different origins.
        const own = from === origin && from !== "null";
        if (type === "pagewire:connect") {
          const ports = messagePorts(event);
          let known = own;
          for (let i = 0; i < settings.origins.length; i++) known ||= from === settings.origins[i];
          if (ports.length !== 1) return;
          if (known) void onport(ports[0]!, source);
          else warn(`pagewire: ${from} may not connect; 'origins' does not list it.`);
        } else if (type === "mcp" && channel === "mcp-default" && payload !== undefined && own && source === window)
          void onenvelope(direction, payload);
      };
      listen(window, "message", onmessage);
      return () => {
        unlisten(window, "message", onmessage);
        if (asked) say("mcp-server-stopped");
      };
    },

    /**
     * Opens a port for an agent in the page's own script. It is a transport for the official
     * TypeScript client: late/transport.ts has what it does. A client prepares its first message
     * while the late part is on its way, so `start` waits for nothing. Async functions return real
     * promises, also if the page has patched Promise.
     */
    connect(): PagewireTransport {
      const transport: PagewireTransport = {
        async start() {},
        async send(message) {
          // Now, since the caller may change the message later. Throws a TypeError for a cycle or a
          // BigInt.
          const text = stringify(message);
          await (await session).send(text);
        },
        async close() {
          (await session).close();
        },
      };
      const session: Promise<Session> = (async () => {
        try {
          return (await arrive(true)).connect(transport);
        } catch (cause) {
          // Two microtasks, so that onclose is called even if onerror throws.
          microtask(() => transport.onerror?.(cause as Error));
          microtask(() => transport.onclose?.());
          return {
            send() {
              throw cause;
            },
            close() {},
          };
        }
      })();
      return transport;
    },
  };
}
