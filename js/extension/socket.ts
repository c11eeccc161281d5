/**
 * The transport by WebSocket, where the native host is not installed: one connection with a `pagewire serve` on this
 * machine for each document. It is the transport of a page with data-gateway (js/late/gateway.ts), but the gateway
 * believes us whose document it is, since both prove first that they know a secret: the one that the native host has
 * told us when it was there. Without one nothing is dialled. The other side is bridge/gateway/pages/socket.
 */
import { reconnect } from "../link/reconnect.ts";
import type { Link, Live } from "./documents.ts";
import { prove } from "./prove.ts";
import { farewell, type Transport, type State, type TabName, tooMuch } from "./transport.ts";

/** The longest pause, and that after a gateway that could not prove itself: it hardly can a moment later. */
const longestPause = 10_000;
/** The worker is suspended when it has said nothing for 30 s. */
const aliveEvery = 20_000;

interface Served {
  document: Live;
  socket?: WebSocket | undefined;
  link?: Link | undefined;
  loop: ReturnType<typeof reconnect>;
}

export function socket(url: string, secret: string | undefined, name: TabName, changed: () => void): Transport {
  const unknown = "the native host is not installed, and never was: run pagewire extension install";
  let state: State = { transport: "WebSocket", connected: false, why: secret ? "" : unknown };
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
    /** Who waits for the next text while the two ends prove themselves. */
    let hear: ((text: string) => void) | undefined;
    const talk = {
      send: (text: string) => live() && ours.send(text),
      next: () => new Promise<string>((done) => (hear = done)),
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
        one.link = document.link(name(document.tab), {
          frame: (text) => {
            if (!live()) return;
            ours.send(text);
            const why = tooMuch(ours.bufferedAmount, waiting);
            if (why) one.link?.expel(why);
          },
          closed: () => live() && again(one),
        });
        one.loop.opened();
        become("");
      } catch {
        again(one); // it has gone, or may not be read any more
      }
    };
    ours.onmessage = ({ data }: MessageEvent<string>) => {
      if (!live()) return;
      if (hear) {
        const next = hear;
        hear = undefined;
        return next(data);
      }
      one.link?.say(data);
    };
    ours.onclose = ({ reason }) => {
      if (!live()) return;
      again(one);
      become(reason || `no pagewire serve answers at ${url}`);
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
      const now = new Set(documents.map(({ id }) => id));
      for (const [id, one] of served) {
        if (now.has(id)) continue;
        served.delete(id);
        hangUp(one);
      }
      for (const document of documents) {
        const { id } = document;
        if (served.has(id)) continue;
        const one: Served = {
          document,
          loop: reconnect(
            () => dial(one),
            () => longestPause,
          ),
        };
        served.set(id, one);
        dial(one);
      }
      become(state.why);
    },
    close() {
      clearInterval(alive);
      for (const one of served.values()) hangUp(one);
      served.clear();
    },
  };
}
