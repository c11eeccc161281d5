/**
 * The road by WebSocket, where the native host is not installed: one connection with a `pagewire serve` on this machine for each
 * document. It is the road of a page with data-gateway (js/page/gateway.ts), but the gateway believes us whose document it is,
 * since it knows our extension's id. The other side is bridge/gateway/socket.
 */
import type { Document, Session } from "../extension.d.ts";
import { introduction, type Road, type State, type TabName } from "./road.ts";

const firstPause = 100;
const longestPause = 10_000;
/** The worker is suspended when it has said nothing for 30 s. */
const aliveEvery = 20_000;

interface Served {
  document: Document;
  socket?: WebSocket | undefined;
  session?: Session | undefined;
  failures: number;
  timer?: ReturnType<typeof setTimeout> | undefined;
  title: string;
  focused: number;
  over: boolean;
}

export function socket(url: string, name: TabName, changed: () => void): Road {
  let state: State = { road: "WebSocket", connected: false, why: "" };
  const served = new Map<number, Served>();

  const become = (why: string) => {
    let connected = false;
    for (const one of served.values()) connected ||= one.session !== undefined;
    if (connected) why = "";
    if (state.connected === connected && state.why === why) return;
    state = { road: "WebSocket", connected, why };
    changed();
  };
  const hangUp = (one: Served) => {
    clearTimeout(one.timer);
    const { socket, session, document } = one;
    if (!document.admitted && socket?.readyState === WebSocket.OPEN)
      socket.send(JSON.stringify({ type: "pagewire:page", gone: true }));
    one.socket = one.session = undefined;
    session?.close();
    socket?.close();
  };
  const again = (one: Served) => {
    hangUp(one);
    if (one.over) return;
    one.timer = setTimeout(() => dial(one), Math.min(longestPause, firstPause * 2 ** one.failures++));
  };
  const dial = (one: Served) => {
    const { document } = one;
    const ours = (one.socket = new WebSocket(url, "pagewire.v1"));
    const live = () => one.socket === ours;
    let early: string[] | undefined = [];
    ours.onopen = async () => {
      ours.send(JSON.stringify({ type: "pagewire:page", ...introduction(document, name) }));
      try {
        const session = await document.open({
          deliver: (text) => live() && ours.send(text),
          closed: () => live() && again(one),
        });
        if (!live()) return session.close();
        one.session = session;
        one.failures = 0;
        become("");
        const waiting = early!;
        early = undefined;
        for (const text of waiting) session.receive(text);
      } catch (cause) {
        console.warn(`pagewire: ${document.origin} is not served: ${(cause as Error).message}`);
        if (live()) again(one);
      }
    };
    ours.onmessage = ({ data }: MessageEvent<string>) => {
      if (!live() || data.startsWith('{"type":"pagewire:')) return;
      if (early) early.push(data);
      else one.session?.receive(data);
    };
    ours.onclose = ({ reason }) => {
      if (!live()) return;
      again(one);
      become(reason || `no pagewire serve answers at ${url}`);
    };
  };
  const alive = setInterval(() => {
    for (const { document, session } of served.values()) if (session) document.keepAlive();
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
        one.over = true;
        hangUp(one);
      }
      for (const document of documents) {
        const { id, title, focused } = document;
        const known = served.get(id);
        if (known) {
          if (known.session && (known.title !== title || known.focused !== focused))
            known.socket!.send(JSON.stringify({ type: "pagewire:page", title, focused }));
          known.title = title;
          known.focused = focused;
          continue;
        }
        const one: Served = { document, failures: 0, title, focused, over: false };
        served.set(id, one);
        dial(one);
      }
      become(state.why);
    },
    close() {
      clearInterval(alive);
      for (const one of served.values()) {
        one.over = true;
        hangUp(one);
      }
      served.clear();
    },
  };
}
