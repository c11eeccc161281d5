/**
 * `pagewire/views`: lets the Views of an MCP Apps host subscribe to resources of the server that
 * they came from, as ext-apps#659 proposes. `attachViews` adds that to an `AppBridge` of
 * @modelcontextprotocol/ext-apps 2.x, or to a host that talks to its frames by postMessage itself.
 *
 * host.ts has the rules. Other messages pass through untouched; the bridge keeps its handlers and
 * notices nothing.
 *
 * It never reads a resource by itself, nor passes data of one server to Views of another. It
 * announces subscriptions only where they work.
 */
import { isElement, watchFrame } from "./frames.ts";
import { Server } from "./server.ts";
import { isMessage, type TransportLike } from "./upstream.ts";
import { View } from "./view.ts";
import type * as types from "../views.d.ts";
import type { AttachOptions, BridgeLike, Message, Views } from "../views.d.ts";

export { EXPERIMENTAL } from "./view.ts";

export const attachViews: typeof types.attachViews = (bridge, upstream, given) => {
  // What a bug of the page puts on Object.prototype is no option: `origin` would be another site's.
  const options = { __proto__: null, ...given } as AttachOptions;
  const server = Server.of(upstream, options);
  return isBridge(bridge) ? attachBridge(bridge, server, options) : attachFrame(bridge, server, options);
};

function isBridge(target: BridgeLike | HTMLIFrameElement | Window): target is BridgeLike {
  // A window of another origin allows access only to a few members, such as postMessage.
  return typeof (target as Window).postMessage !== "function" && typeof (target as BridgeLike).connect === "function";
}

/** A transport as an AppBridge takes it. */
interface Transport extends TransportLike {
  start(): Promise<void>;
  send(message: Message, options?: unknown): Promise<void>;
  /** PostMessageTransport has it. With another transport the frame is not known. */
  readonly eventTarget?: Window;
}

function attachBridge(bridge: BridgeLike, server: Server, options: AttachOptions): Views {
  const view = new View(server, options.reads === "shared");
  /**
   * Lets the View look at the messages in both directions, once the bridge has set its handlers.
   */
  const tap = (transport: Transport): void => {
    const { onmessage, onclose } = transport;
    const send = transport.send.bind(transport);
    view.post = (m) => void send(m).catch(() => {});
    transport.onmessage = (m, ...rest) => {
      if (!isMessage(m) || !view.incoming(m)) onmessage?.call(transport, m, ...rest);
    };
    transport.send = (m, o) => send(isMessage(m) ? view.outgoing(m) : m, o);
    transport.onclose = () => {
      view.close();
      onclose?.call(transport);
    };
    const frame = options.frame ?? transport.eventTarget;
    if (frame) view.undo.push(watchFrame(frame, view));
  };
  if (bridge.transport) {
    tap(bridge.transport as Transport);
    return view;
  }
  const connect = bridge.connect as (transport: Transport, ...rest: unknown[]) => Promise<void>;
  bridge.connect = ((transport: Transport, ...rest: unknown[]) => {
    // A second connect is for another View, or for a new start of this one. Both attach again.
    bridge.connect = connect as never;
    const { start } = transport;
    // The bridge sets its handlers, and then starts the transport.
    transport.start = () => {
      transport.start = start;
      tap(transport);
      return transport.start();
    };
    return connect.call(bridge, transport, ...rest);
  }) as never;
  return view;
}

function attachFrame(frame: HTMLIFrameElement | Window, server: Server, options: AttachOptions): Views {
  const view = new View(server, options.reads !== "host");
  const target = (): Window | null => (isElement(frame) ? frame.contentWindow : frame);
  const origin = options.origin ?? "*";
  view.post = (m) => target()?.postMessage(m, origin);
  const listener = (event: MessageEvent<unknown>): void => {
    if (event.source !== target() || (origin !== "*" && event.origin !== origin) || !isMessage(event.data)) return;
    // A request that is answered here must not reach the host's own listener, which would refuse
    // it.
    if (view.incoming(event.data)) event.stopImmediatePropagation();
  };
  // Before our listener, which stops messages.
  view.undo.push(watchFrame(options.frame ?? frame, view));
  addEventListener("message", listener, { capture: true });
  view.undo.push(() => removeEventListener("message", listener, { capture: true }));
  return view;
}
