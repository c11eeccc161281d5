/**
 * The way in for agents, as far as every page carries it: pagewire.connect(), ports posted to the window, and the
 * import of dist/pagewire.core.js when the first of them comes. All else is in sessions.ts, which comes with it.
 *
 * It never fetches anything before it is asked to, and never throws into a page's event loop: a failure closes the
 * port that waits, is logged, and is an `error` event.
 */
import type { PagewireTransport } from "../pagewire.d.ts";
import { closePort, error, listen, messageData, messageOrigin, messagePorts, messageSource, microtask, postToPort, stringify, unlisten } from "./intrinsics.ts";
import type { Carrier, Ground, Port, Sessions } from "./shared.ts";

/** `ground` is what sessions.ts needs, but for what this file adds. */
export function agents(ground: Omit<Ground, "start" | "failed">) {
  const { settings, emit, shared } = ground;
  let loaded: Promise<Sessions> | undefined;

  const failed = (cause: unknown) => {
    const message = `pagewire: no core from ${settings.core}: ${cause}. Are the files of dist/ together, or named by data-core, data-wasm and data-worker? Connecting again tries again.`;
    error(message);
    emit("error", { message, cause });
    return new Error(message);
  };

  const load = async () => {
    shared.stats.core = "loading";
    try {
      const { sessions, start } = await import(settings.core);
      return sessions({ ...ground, failed, start }) as Sessions;
    } catch (cause) {
      loaded = undefined; // Chromium fetches again what failed
      shared.stats.core = "none";
      throw failed(cause);
    }
  };
  const arrive = () => (loaded ??= load());
  // Each promise is awaited, none returned: an async function that returns a promise calls its `then`, which a page can
  // have patched; `await` does not.
  const open = async (carrier: Carrier) => await (await arrive()).open(carrier);

  return {
    /** Loads the core ahead of need. */
    async warmUp(): Promise<void> {
      try {
        await (await arrive()).need();
      } catch {} // it has been reported
    },

    async shutDown(reason: string): Promise<void> {
      const { core } = shared;
      shared.core = undefined;
      core?.stop();
      if (loaded) (await loaded).shutDown(reason);
    },

    /**
     * Accepts MessagePorts that scripts, frames and windows of the page's own origin post to it: `{type:
     * "pagewire:connect"}` with one port, on which JSON-RPC objects travel. The result ends that.
     */
    acceptPorts(): () => void {
      const onmessage = async (event: MessageEvent) => {
        const ports = messagePorts(event);
        const { origin } = settings;
        // Every opaque origin is called "null": equal names, different origins.
        if (messageData(event)?.type !== "pagewire:connect" || messageOrigin(event) !== origin || origin === "null" || ports.length !== 1) return;
        const port = ports[0]!;
        const source = messageSource(event);
        try {
          await (await arrive()).serve(port, source);
        } catch (cause) {
          postToPort(port, { type: "pagewire:close", reason: (cause as Error).message });
          closePort(port);
        }
      };
      listen(globalThis.window, "message", onmessage);
      return () => unlisten(globalThis.window, "message", onmessage);
    },

    /**
     * A port for an agent in the page's own script, as the transport object that the official TypeScript client
     * takes. Messages are delivered in microtasks, in order, never from within `send`; handlers are looked up for
     * each, as clients replace them. What async functions return are real promises, whatever became of Promise.
     */
    connect(): PagewireTransport {
      let started = false;
      let ended = "";
      const end = (reason: string, failure: boolean) => {
        if (ended) return;
        ended = reason;
        // Two microtasks, for a throwing onerror must not keep onclose from being called.
        if (failure) microtask(() => transport.onerror?.(new Error(reason)));
        microtask(() => transport.onclose?.());
      };
      const requireOpen = () => {
        if (ended) throw new Error(`pagewire: the transport is closed: ${ended}`);
      };
      const transport: PagewireTransport = {
        onmessage: undefined,
        onclose: undefined,
        onerror: undefined,
        async start() {
          requireOpen();
          if (started) throw new Error("pagewire: the transport is started (Client.connect does that)");
          started = true;
        },
        async send(message) {
          requireOpen();
          // Now, since the caller may change it; who sends a cycle or a BigInt gets the TypeError of JSON.stringify.
          const text = stringify(message);
          // Waits for the core; later messages wait behind this one.
          (await port).receive(text ?? "undefined");
        },
        async close() {
          end("closed by the client", false);
          void closeWhenOpen();
        },
      };
      const closeWhenOpen = async () => {
        try {
          (await port).close(ended);
        } catch {} // it never opened
      };
      const port: Promise<Port> = (async () => {
        try {
          return await open({ deliver: (message) => ended || transport.onmessage?.(message), closed: end });
        } catch (cause) {
          end((cause as Error).message, true);
          throw cause;
        }
      })();
      void settled(port);
      return transport;
    },
  };
}

/** Keeps a failure that nobody awaits from being an unhandled rejection; `end` has told the client. */
async function settled(port: Promise<Port>): Promise<void> {
  try {
    await port;
  } catch {}
}
