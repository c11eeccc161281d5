/**
 * The transport by native messaging: one process, `pagewire native-host`, that the browser starts for us, and all
 * documents over its standard input and output. The other side is bridge/gateway/pages/extension, which describes the
 * messages.
 *
 * While there is no document there is no process: the port is closed a while after the last has gone.
 */
import { reconnect } from "../link/reconnect.ts";
import type { Link, Live } from "./documents.ts";
import { farewell, type Transport, type State, type TabName, tooMuch } from "./transport.ts";

/** The name under which `pagewire extension install` makes the host known. */
export const host = "com.pagewire.host";

/** How long the process is kept without a document, in ms: a reload has none for a moment. */
const linger = 5_000;
const longestPause = 30_000;
/** How long a document waits that has ended its link, or has been refused. */
const longPause = 1_000;
/**
 * The longest piece of a frame, and how much of a document may be on its way to the gateway, in UTF-16 code units. The
 * host takes 8 MiB of each, and says what the gateway has taken when it is asked to: once for each `step`.
 */
const maxPiece = 512 << 10;
const window = 2 << 20;
const step = 256 << 10;

/** What the host says. */
interface FromHost {
  type: "hello" | "open" | "frame" | "taken" | "close" | "refused" | "failed";
  id?: number;
  session?: number;
  text?: string;
  more?: boolean;
  ack?: number;
  reason?: string;
  secret?: string;
}

interface Served {
  document: Live;
  link?: Link | undefined;
  /** Which of the sessions that the host has opened it is: its number; 0 for none. */
  turn: number;
  /** The host knows it no more. */
  shut: boolean;
  /** The pieces of a frame of the gateway's that is not whole. */
  pieces: string[];
  /** Frames for the gateway; what of the first has been sent; how much waits in all. */
  frames: string[];
  from: number;
  waiting: number;
  /** How much was sent, when that was said last, and how much the gateway has taken. */
  sent: number;
  asked: number;
  taken: number;
}

/** `absent` is called when the browser knows no host, `learned` with the secret that a host has told. */
export function nativeMessaging(
  name: TabName,
  changed: () => void,
  absent: (why: string) => void,
  learned: (secret: string) => void,
): Transport {
  let port: chrome.runtime.Port | undefined;
  let state: State = { transport: "native messaging", connected: false, why: "" };
  const served = new Map<number, Served>();
  /** Ends the process when there has been no document for a while. */
  let idle: ReturnType<typeof setTimeout> | undefined;
  let over = false;

  const become = (connected: boolean, why: string) => {
    state = { transport: "native messaging", connected, why };
    changed();
  };
  const say = (message: object) => port?.postMessage(message);
  const introduce = (one: Served) => {
    one.shut = false;
    say({ type: "open", id: one.document.id, origin: one.document.origin });
  };

  /** Sends what the gateway has room for. */
  const pump = (one: Served) => {
    const { id } = one.document;
    while (one.frames.length && one.sent - one.taken < window) {
      const frame = one.frames[0]!;
      let to = Math.min(frame.length, one.from + maxPiece);
      const unit = frame.charCodeAt(to - 1);
      if (to < frame.length && unit >= 0xd800 && unit < 0xdc00) to--; // half a character would not survive
      const text = frame.slice(one.from, to);
      const more = to < frame.length;
      one.sent += text.length;
      one.waiting -= text.length;
      one.from = more ? to : 0;
      if (!more) one.frames.shift();
      const ask = one.sent - one.asked >= step;
      if (ask) one.asked = one.sent;
      say({ type: "frame", id, session: one.turn, text, ...(more && { more }), ...(ask && { ack: one.sent }) });
    }
  };
  const all = () => {
    let sum = 0;
    for (const { waiting } of served.values()) sum += waiting;
    return sum;
  };

  const end = (one: Served) => {
    one.turn = one.from = one.waiting = one.sent = one.asked = one.taken = 0;
    one.link?.close();
    one.link = undefined;
    one.pieces = [];
    one.frames = [];
  };
  const shut = (one: Served) => {
    const { turn, document } = one;
    // Not within a frame, where it would be read as its end. The gateway then waits a moment for the document to come
    // back.
    if (!one.shut && turn && !document.admitted && !one.from)
      say({ type: "frame", id: document.id, session: turn, text: farewell });
    if (!one.shut) say({ type: "close", id: document.id });
    one.shut = true;
    end(one);
  };
  /** A document whose link has ended by its own decision is there again after a while. */
  const later = (one: Served) =>
    setTimeout(() => port && one.shut && served.get(one.document.id) === one && introduce(one), longPause);
  /** The host has connected a document with a gateway. */
  const begin = (one: Served, turn: number) => {
    end(one);
    const { document } = one;
    try {
      one.link = document.link(name(document.tab), {
        frame: (text) => {
          if (one.turn !== turn) return;
          one.frames.push(text);
          one.waiting += text.length;
          pump(one);
          const why = tooMuch(one.waiting, all);
          if (why) one.link?.expel(why);
        },
        closed: () => {
          if (one.turn !== turn) return;
          shut(one);
          later(one);
        },
      });
      one.turn = turn;
    } catch {
      shut(one); // it has gone, or may not be read any more
    }
  };

  const hear = (message: FromHost) => {
    if (message.type === "hello") {
      loop.opened();
      if (typeof message.secret === "string" && message.secret) learned(message.secret);
      return become(true, "");
    }
    if (message.type === "failed") return become(false, String(message.reason));
    const one = served.get(message.id!);
    if (message.type === "refused") {
      console.warn(`pagewire: the native host refused a message: ${message.reason}`);
      if (!one) return;
      one.shut = true; // with an id, the document is open no more
      end(one);
      return later(one);
    }
    if (!one) return; // it has gone while this was on its way
    if (message.type === "open") begin(one, message.session!);
    else if (message.type === "close") {
      end(one);
      if (message.reason) console.warn(`pagewire: ${one.document.origin}: ${message.reason}`);
    } else if (message.type === "taken") {
      if (message.session !== one.turn) return;
      one.taken = message.ack!;
      pump(one);
    } else if (message.type === "frame") {
      one.pieces.push(message.text!);
      if (message.more) return;
      const text = one.pieces.length === 1 ? one.pieces[0]! : one.pieces.join("");
      one.pieces = [];
      one.link?.say(text);
    }
  };

  const connect = () => {
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
      paused = true;
      loop.again();
    });
    for (const one of served.values()) introduce(one);
  };
  /** A pause is not to be cut short by documents that come. */
  let paused = false;
  const loop = reconnect(
    () => {
      paused = false;
      connect();
    },
    () => longestPause,
  );

  return {
    get state() {
      return state;
    },
    serve(documents) {
      const now = new Set(documents.map(({ id }) => id));
      for (const [id, one] of served) {
        if (now.has(id)) continue;
        served.delete(id);
        shut(one);
      }
      for (const document of documents) {
        const { id } = document;
        if (served.has(id)) continue;
        const one: Served = {
          document,
          turn: 0,
          shut: false,
          pieces: [],
          frames: [],
          from: 0,
          waiting: 0,
          sent: 0,
          asked: 0,
          taken: 0,
        };
        served.set(id, one);
        if (port) introduce(one);
      }
      clearTimeout(idle);
      if (served.size && !port && !paused) connect();
      if (!served.size && port)
        idle = setTimeout(() => {
          port?.disconnect();
          port = undefined;
          become(false, "");
        }, linger);
    },
    close() {
      over = true;
      loop.stop();
      clearTimeout(idle);
      for (const one of served.values()) end(one);
      served.clear();
      port?.disconnect();
      port = undefined;
    },
  };
}
