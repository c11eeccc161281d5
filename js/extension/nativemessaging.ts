/**
 * The transport by native messaging. The browser starts one process, `pagewire native-host`, and
 * the messages of all documents go over its standard input and output. The other side is
 * bridge/pages/extension, which describes the messages.
 *
 * The number of tabs (reports.ts) is served as a document is, so the process runs until the user
 * stops all sites. Without documents there is none: the port is closed `linger` after the last one
 * has gone.
 */
import { reconnect } from "../link/reconnect.ts";
import {
  farewell,
  syncServed,
  type Link,
  type Linkable,
  type Transport,
  type State,
  type TabName,
  tooMuch,
} from "./transport.ts";

/** The name under which `pagewire extension install` makes the host known. */
export const host = "com.pagewire.host";

/** How long the process is kept without a document, in ms: during a reload there is no document. */
const linger = 5_000;
const longestPause = 30_000;
/** How long a document waits after it has ended its link, or was refused, in ms. */
const longPause = 1_000;
/**
 * The longest piece of a frame, and the most text of a document on the way to the gateway, in
 * UTF-16 code units. The host takes 8 MiB of each document, and acknowledges once for each `step`.
 */
const maxPiece = 512 << 10;
const window = 2 << 20;
const step = 256 << 10;

/** A message of the host. */
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
  document: Linkable;
  /** There is one while there is a session. */
  link?: Link | undefined;
  /** The number of the session that the host has opened for it; 0 for none. */
  session: number;
  /** The host has forgotten the document. */
  closed: boolean;
  /** The pieces of an incomplete frame from the gateway. */
  pieces: string[];
  /**
   * Frames for the gateway; the length that was sent of the first; the length of all that waits.
   */
  frames: string[];
  from: number;
  waiting: number;
  /**
   * The length that was sent; the part of it at the last request for an acknowledgement; the
   * acknowledged part.
   */
  sent: number;
  asked: number;
  taken: number;
}

/**
 * `absent` is called when the browser knows no host, `learned` with the secret that a host has
 * sent.
 */
export function nativeMessaging(
  name: TabName,
  changed: () => void,
  absent: (why: string) => void,
  learned: (secret: string) => void,
): Transport {
  /** To the process that runs; undefined if none does. */
  let port: chrome.runtime.Port | undefined;
  let state: State = { transport: "native messaging", connected: false, why: "" };
  /** By the document's id: what the process knows, or will be told once it runs. */
  const served = new Map<number, Served>();
  /** Ends the process when there has been no document for a while. */
  let idle: ReturnType<typeof setTimeout> | undefined;
  let over = false;

  const become = (connected: boolean, why: string) => {
    state = { transport: "native messaging", connected, why };
    changed();
  };
  const send = (message: object) => port?.postMessage(message);
  const open = (one: Served) => {
    one.closed = false;
    send({ type: "open", id: one.document.id, origin: one.document.origin });
  };

  /** Sends frames while the gateway has room. */
  const pump = (one: Served) => {
    const { id } = one.document;
    while (one.frames.length && one.sent - one.taken < window) {
      const frame = one.frames[0]!;
      let to = Math.min(frame.length, one.from + maxPiece);
      const unit = frame.charCodeAt(to - 1);
      if (to < frame.length && unit >= 0xd800 && unit < 0xdc00) to--; // half a surrogate pair would not survive
      const text = frame.slice(one.from, to);
      const more = to < frame.length;
      one.sent += text.length;
      one.waiting -= text.length;
      one.from = more ? to : 0;
      if (!more) one.frames.shift();
      const ask = one.sent - one.asked >= step;
      if (ask) one.asked = one.sent;
      send({ type: "frame", id, session: one.session, text, ...(more && { more }), ...(ask && { ack: one.sent }) });
    }
  };
  const all = () => {
    let sum = 0;
    for (const { waiting } of served.values()) sum += waiting;
    return sum;
  };

  const reset = (one: Served) => {
    one.session = one.from = one.waiting = one.sent = one.asked = one.taken = 0;
    one.link?.close();
    one.link = undefined;
    one.pieces = [];
    one.frames = [];
  };
  const close = (one: Served) => {
    const { session, document } = one;
    // Not within a frame: the farewell would end that. Without a farewell the gateway waits a
    // moment for the document.
    if (!one.closed && session && !document.admitted && !one.from)
      send({ type: "frame", id: document.id, session, text: farewell });
    if (!one.closed) send({ type: "close", id: document.id });
    one.closed = true;
    reset(one);
  };
  /** Opens a document again, some time after it has ended its link. */
  const reopenLater = (one: Served) =>
    setTimeout(() => port && one.closed && served.get(one.document.id) === one && open(one), longPause);
  /** The host has connected a document with a gateway. */
  const beginSession = (one: Served, session: number) => {
    reset(one);
    const { document } = one;
    try {
      one.link = document.link(name, {
        frame: (text) => {
          if (one.session !== session) return;
          one.frames.push(text);
          one.waiting += text.length;
          pump(one);
          const why = tooMuch(one.waiting, all);
          if (why) one.link?.refuse(why);
        },
        closed: () => {
          if (one.session !== session) return;
          close(one);
          reopenLater(one);
        },
      });
      one.session = session;
    } catch {
      close(one); // the document has gone, or is no longer admitted
    }
  };

  const receive = (message: FromHost) => {
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
      one.closed = true; // a refusal with an id closes the document
      reset(one);
      return reopenLater(one);
    }
    if (!one) return; // the document has gone meanwhile
    if (message.type === "open") beginSession(one, message.session!);
    else if (message.type === "close") {
      reset(one);
      if (message.reason) console.warn(`pagewire: ${one.document.origin}: ${message.reason}`);
    } else if (message.type === "taken") {
      if (message.session !== one.session) return;
      one.taken = message.ack!;
      pump(one);
    } else if (message.type === "frame") {
      one.pieces.push(message.text!);
      if (message.more) return;
      const text = one.pieces.length === 1 ? one.pieces[0]! : one.pieces.join("");
      one.pieces = [];
      one.link?.send(text);
    }
  };

  const connect = () => {
    if (port || over || !served.size) return;
    const ours = (port = chrome.runtime.connectNative(host));
    ours.onMessage.addListener((message) => port === ours && receive(message as FromHost));
    ours.onDisconnect.addListener(() => {
      const why = chrome.runtime.lastError?.message ?? "it has ended";
      if (port !== ours) return;
      port = undefined;
      const was = state;
      for (const one of served.values()) reset(one);
      become(false, was.why && !was.connected ? was.why : why);
      if (/not found|forbidden/i.test(why)) return absent(why);
      paused = true;
      loop.again();
    });
    for (const one of served.values()) open(one);
  };
  /** Whether the loop pauses: new documents do not cut the pause short. */
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
      const add = (document: Linkable): Served => {
        const counts = { session: 0, from: 0, waiting: 0, sent: 0, asked: 0, taken: 0 };
        const one = { document, closed: false, pieces: [], frames: [], ...counts };
        if (port) open(one);
        return one;
      };
      syncServed(served, documents, add, close);
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
      for (const one of served.values()) reset(one);
      served.clear();
      port?.disconnect();
      port = undefined;
    },
  };
}
