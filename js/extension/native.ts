/**
 * The road by native messaging: one process, `pagewire native-host`, that the browser starts for us, and all documents over its
 * standard input and output. The other side is bridge/gateway/native, which describes the messages.
 *
 * While there is no document there is no process: the port is closed a while after the last has gone.
 */
import type { Document, Session } from "../extension.d.ts";
import { introduction, type Road, type State, type TabName } from "./road.ts";

/** The name under which `pagewire extension install` makes the host known. */
export const host = "com.pagewire.host";

/** How long the process is kept without a document, in ms: a reload has none for a moment. */
const linger = 5_000;
const firstPause = 200;
const longestPause = 30_000;
/** The longest piece of a message, in UTF-16 code units. The browser takes 64 MiB of JSON. */
const maxPiece = 4 << 20;

/** What the host says. */
interface FromHost {
  type: "hello" | "open" | "message" | "close" | "refused" | "failed";
  id?: number;
  session?: number;
  text?: string;
  more?: boolean;
  reason?: string;
}

interface Served {
  document: Document;
  session?: Session | undefined;
  /** Which of the sessions that the host has opened it is: its number; 0 for none. */
  turn: number;
  /** The host knows it no more. */
  shut: boolean;
  /** What came before the session was open. */
  early: string[];
  /** The pieces of a message that is not whole. */
  pieces: string[];
  title: string;
  focused: number;
}

/** `absent` is called when the browser knows no host. */
export function native(name: TabName, changed: () => void, absent: (why: string) => void): Road {
  let port: chrome.runtime.Port | undefined;
  let state: State = { road: "native messaging", connected: false, why: "" };
  const served = new Map<number, Served>();
  let failures = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let over = false;

  const become = (connected: boolean, why: string) => {
    state = { road: "native messaging", connected, why };
    changed();
  };
  const say = (message: object) => port?.postMessage(message);
  const introduce = (one: Served) => {
    one.shut = false;
    say({ type: "open", id: one.document.id, ...introduction(one.document, name) });
  };

  const deliver = (id: number, session: number, text: string) => {
    let from = 0;
    while (text.length - from > maxPiece) {
      let to = from + maxPiece;
      const unit = text.charCodeAt(to - 1);
      if (unit >= 0xd800 && unit < 0xdc00) to--; // half a character would not survive
      say({ type: "message", id, session, text: text.slice(from, to), more: true });
      from = to;
    }
    say({ type: "message", id, session, text: from ? text.slice(from) : text });
  };

  const end = (one: Served) => {
    one.turn = 0;
    one.session?.close();
    one.session = undefined;
    one.early = [];
    one.pieces = [];
  };
  const shut = (one: Served) => {
    if (!one.shut) say({ type: "close", id: one.document.id, gone: !one.document.admitted });
    one.shut = true;
  };
  /** The host has connected a document with a gateway. */
  const begin = async (one: Served, turn: number) => {
    end(one);
    one.turn = turn;
    const { document } = one;
    const lost = () => {
      if (one.turn !== turn) return;
      end(one);
      shut(one);
    };
    try {
      const session = await document.open({
        deliver: (text) => one.turn === turn && deliver(document.id, turn, text),
        closed: lost,
      });
      if (one.turn !== turn) return session.close();
      one.session = session;
      const { early } = one;
      one.early = [];
      for (const text of early) session.receive(text);
    } catch (cause) {
      console.warn(`pagewire: ${document.origin} is not served: ${(cause as Error).message}`);
      lost();
    }
  };

  const hear = (message: FromHost) => {
    if (message.type === "hello") {
      failures = 0;
      return become(true, "");
    }
    if (message.type === "failed") return become(false, String(message.reason));
    if (message.type === "refused")
      return console.warn(`pagewire: the native host refused a message: ${message.reason}`);
    const one = served.get(message.id!);
    if (!one) return; // it has gone while this was on its way
    if (message.type === "open") void begin(one, message.session!);
    else if (message.type === "close") {
      end(one);
      if (message.reason) console.warn(`pagewire: ${one.document.origin}: ${message.reason}`);
    } else if (message.type === "message") {
      one.pieces.push(message.text!);
      if (message.more) return;
      const text = one.pieces.length === 1 ? one.pieces[0]! : one.pieces.join("");
      one.pieces = [];
      if (one.session) one.session.receive(text);
      else one.early.push(text);
    }
  };

  const connect = () => {
    clearTimeout(timer);
    timer = undefined;
    if (port || over || !served.size) return;
    const ours = (port = chrome.runtime.connectNative(host));
    ours.onMessage.addListener((message) => port === ours && hear(message as FromHost));
    ours.onDisconnect.addListener(() => {
      const why = chrome.runtime.lastError?.message ?? "it has ended";
      if (port !== ours) return;
      port = undefined;
      const was = state;
      for (const one of served.values()) end(one);
      become(false, was.why && !was.connected ? was.why : why);
      if (/not found|forbidden/i.test(why)) return absent(why);
      timer = setTimeout(connect, Math.min(longestPause, firstPause * 2 ** failures++));
    });
    for (const one of served.values()) introduce(one);
  };

  return {
    get state() {
      return state;
    },
    serve(documents) {
      const now = new Set(documents.map(({ id }) => id));
      for (const [id, one] of served) {
        if (now.has(id)) continue;
        served.delete(id);
        end(one);
        shut(one);
      }
      for (const document of documents) {
        const { id, title, focused } = document;
        const known = served.get(id);
        if (known) {
          if (!known.shut && (known.title !== title || known.focused !== focused))
            say({ type: "note", id, title, focused });
          known.title = title;
          known.focused = focused;
          continue;
        }
        const one: Served = { document, turn: 0, shut: false, early: [], pieces: [], title, focused };
        served.set(id, one);
        if (port) introduce(one);
      }
      if (served.size && !port && timer === undefined) connect();
      if (!served.size && port) {
        clearTimeout(timer);
        timer = setTimeout(() => {
          timer = undefined;
          if (served.size) return;
          port?.disconnect();
          port = undefined;
          become(false, "");
        }, linger);
      }
    },
    close() {
      over = true;
      clearTimeout(timer);
      for (const one of served.values()) end(one);
      served.clear();
      port?.disconnect();
      port = undefined;
    },
  };
}
