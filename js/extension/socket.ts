/**
 * The transport by WebSocket, for a browser without the native host: one connection with a
 * `pagewire serve` on this machine for each document. It is the transport of a page with
 * data-gateway (js/page/gateway/gateway.ts), but here the gateway trusts the extension's facts
 * about the document, because both ends first prove that they know a secret. The extension has it
 * from the native host, and does not connect without it. The other side is bridge/pages/socket.
 */
import { reconnect } from "../link/reconnect.ts";
import { prove } from "./prove.ts";
import {
  farewell,
  notInstalled,
  syncServed,
  type Link,
  type Linkable,
  type Transport,
  type State,
  type TabName,
  tooMuch,
} from "./transport.ts";

/**
 * The longest pause, in ms. It is also the pause after a failed proof, which would fail again a
 * moment later.
 */
const longestPause = 10_000;
/** The browser suspends a worker that has sent nothing for 30 s. */
const aliveEvery = 20_000;

interface Served {
  document: Linkable;
  /** The connection that is open, or being opened; undefined during a pause. */
  socket?: WebSocket | undefined;
  /** There is one after both ends have proved themselves. */
  link?: Link | undefined;
  loop: ReturnType<typeof reconnect>;
}

export function socket(url: string, secret: string | undefined, name: TabName, changed: () => void): Transport {
  let state: State = { transport: "WebSocket", connected: false, why: secret ? "" : notInstalled };
  const served = new Map<number, Served>();

  const become = (why: string) => {
    let connected = false;
    for (const one of served.values()) connected ||= one.link !== undefined;
    if (connected) why = "";
    if (state.connected === connected && state.why === why) return;
    state = { transport: "WebSocket", connected, why };
    changed();
  };
  const waiting = () => {
    let sum = 0;
    for (const { socket } of served.values()) sum += socket?.bufferedAmount ?? 0;
    return sum;
  };
  const hangUp = (one: Served) => {
    one.loop.stop();
    const { socket, link, document } = one;
    if (link && !document.admitted && socket?.readyState === WebSocket.OPEN) socket.send(farewell);
    one.socket = one.link = undefined;
    link?.close();
    socket?.close();
  };
  const again = (one: Served, pause?: number) => {
    hangUp(one);
    one.loop.again(pause);
  };
  const dial = (one: Served) => {
    if (!secret) return;
    const { document } = one;
    const ours = (one.socket = new WebSocket(url, "pagewire.v1"));
    const live = () => one.socket === ours;
    /** Takes the next text during the proofs. */
    let receive: ((text: string) => void) | undefined;
    const talk = {
      send: (text: string) => live() && ours.send(text),
      next: () => new Promise<string>((done) => (receive = done)),
    };
    ours.onopen = async () => {
      try {
        await prove(secret, url, talk);
      } catch (cause) {
        if (!live()) return;
        again(one, longestPause);
        return become((cause as Error).message);
      }
      if (!live()) return;
      try {
        one.link = document.link(name, {
          frame: (text) => {
            if (!live()) return;
            ours.send(text);
            const why = tooMuch(ours.bufferedAmount, waiting);
            if (why) one.link?.refuse(why);
          },
          closed: () => live() && again(one),
        });
        one.loop.opened();
        become("");
      } catch {
        again(one); // the document has gone, or is no longer admitted
      }
    };
    ours.onmessage = ({ data }: MessageEvent<string>) => {
      if (!live()) return;
      if (receive) {
        const next = receive;
        receive = undefined;
        return next(data);
      }
      one.link?.send(data);
    };
    ours.onclose = ({ reason }) => {
      if (!live()) return;
      again(one);
      become(reason || `Nothing answers at ${new URL(url).host}. Start your agent, or run pagewire serve.`);
    };
  };
  const alive = setInterval(() => {
    for (const { document, link } of served.values()) if (link) document.keepAlive();
  }, aliveEvery);

  return {
    get state() {
      return state;
    },
    serve(documents) {
      const add = (document: Linkable): Served => {
        const one: Served = {
          document,
          loop: reconnect(
            () => dial(one),
            () => longestPause,
          ),
        };
        dial(one);
        return one;
      };
      syncServed(served, documents, add, hangUp);
      become(state.why);
    },
    close() {
      clearInterval(alive);
      for (const one of served.values()) hangUp(one);
      served.clear();
    },
  };
}
