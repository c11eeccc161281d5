// The gateway's messages, and the state that is made of them. bridge/desktop/inspect/feed.go
// describes the messages, and bridge/gateway/observe.go the snapshots and events in them.
//
// All state is bounded: the log to `logSize` entries, each series to `seconds` samples, values to
// the open resources. Strings of pages are only ever shown as text.

import { reconnect } from "../link/reconnect.ts";
import type { Entry, Way } from "../parts/parts.tsx";
import { Shown } from "../parts/text.ts";

export interface Page {
  /** Its tab's number, and the gateway's key of the tab. */
  tab: number;
  key: string;
  frame?: string;
  title: string;
  origin: string;
  url: string;
  transport: string;
  focused?: boolean;
  absent?: boolean;
  resources: number;
  tools: number;
  /** What the gateway has said on the page's console. */
  reports?: string[];
}

export interface Resource {
  uri: string;
  name: string;
  title?: string;
  description?: string;
  mimeType?: string;
  template?: boolean;
  tab: number;
  origin: string;
}

export interface Tool {
  name: string;
  description?: string;
  tab: number;
}

export interface Agent {
  id: number;
  transport: string;
  name: string;
}

export interface Watch {
  uri: string;
  updates: number;
}

export interface Stats {
  /** Calls that wait for a page, and updates that were sent to agents. */
  engine: { calls: number; updates: number };
  reads: number;
  /** Of reads that are over. */
  latency: { count: number; seconds: number };
  updates: number;
  passed: { way: Way; messages: number; bytes: number }[];
  /** Bytes that the gateway keeps of all pages' descriptors. */
  descriptors: number;
  /** The number of links with pages that the gateway has ended, by reason. */
  ended: { [reason: string]: number };
}

export interface Value {
  uri: string;
  at: number;
  text: string;
  mimeType?: string;
  bytes: number;
  binary?: boolean;
  clipped?: boolean;
  error?: string;
  /** The difference from the last read, as a model gets it: a line of JSON. */
  change?: string;
}

type Message =
  | { type: "version"; version: string }
  | { type: "pages"; pages: Page[] }
  | { type: "resources"; resources: { list: Resource[]; all: number } }
  | { type: "watched"; watched: Watch[] }
  | { type: "agents"; agents: Agent[] }
  | { type: "tools"; tools: Tool[] }
  | { type: "stats"; stats: Stats }
  | { type: "log"; entries: Omit<Entry, "n">[]; dropped: number }
  | ({ type: "value" } & Value);

/** The longest pause between attempts to connect, in ms. */
const longestPause = 5_000;

/** The close code of a gateway that does not admit us. */
const policyViolation = 1008;

const logSize = 2000;
export const seconds = 120;

// A Series has the data of a plot: one number per second.
export class Series {
  readonly x = Array.from({ length: seconds }, (_, i) => i - seconds + 1);
  y: number[] = new Array(seconds).fill(0);
  private last: number | undefined;

  // count adds the growth of a total since the last call. A total that shrinks is another
  // gateway's, and counts as 0.
  count(total: number) {
    const grown = this.last === undefined ? 0 : Math.max(0, total - this.last);
    this.last = total;
    this.y = [...this.y.slice(1), grown];
  }

  get now() {
    return this.y[seconds - 1]!;
  }
}

// An Open is a resource whose value is followed.
export class Open {
  value: Value | undefined;
  readonly shown = new Shown();
  /** The last change as a model gets it: "" if it is too long, undefined before the first. */
  change: string | undefined;
  changes = 0;
  readonly rate = new Series();

  take(value: Value) {
    if (this.shown.take(value.text)) {
      this.changes++;
      this.change = value.change ?? "";
    }
    this.value = value;
  }
}

/** An open socket, for an introduction: `next` resolves with the next text that comes. */
export interface Talk {
  send(text: string): void;
  next(): Promise<string>;
}

export class Feed {
  status: "connecting" | "connected" | "lost" | "refused" = "connecting";
  /** Why it is refused, and what to do; "" before that. */
  why = "";
  // The gateway's last message of each kind. They stay while the connection is lost.
  version = "";
  pages: Page[] = [];
  resources: Resource[] = [];
  allResources = 0;
  watched = new Map<string, number>();
  agents: Agent[] = [];
  tools: Tool[] = [];
  stats: Stats | undefined;
  /** The newest messages, at most `logSize`, and how many the gateway has left out. */
  log: Entry[] = [];
  dropped = 0;
  /** While it is paused nothing is added to the log. */
  paused = false;
  /** By URI: what a person follows. The gateway is told all of them on each connection. */
  readonly open = new Map<string, Open>();
  readonly updates = new Series();
  readonly reads = new Series();
  readonly messages = new Series();
  readonly bytes = new Series();

  /** The newest connection, in any state. */
  private socket: WebSocket | undefined;
  private readonly loop = reconnect(
    () => this.connect(),
    () => longestPause,
  );
  /** The number of the log's last entry. */
  private entries = 0;
  /** Whether a call of `changed` is due. */
  private scheduled = false;

  // changed is called at most once per frame. introduce is called first on each connection with
  // url; if it throws, the feed is given up.
  constructor(
    private readonly url: string,
    private readonly changed: () => void,
    private readonly introduce: (talk: Talk) => Promise<void>,
  ) {
    this.connect();
    setInterval(() => this.sample(), 1000);
  }

  private connect() {
    const socket = new WebSocket(this.url);
    this.socket = socket;
    let gaveUp = "";
    let answer: ((text: string) => void) | undefined;
    socket.onopen = async () => {
      try {
        await this.introduce({ send: (text) => socket.send(text), next: () => new Promise((done) => (answer = done)) });
      } catch (cause) {
        gaveUp = (cause as Error).message;
        return socket.close();
      }
      this.loop.opened();
      this.say({ log: !this.paused });
      for (const uri of this.open.keys()) this.say({ open: uri });
    };
    socket.onmessage = (event) => {
      if (answer) {
        answer(event.data);
        answer = undefined;
        return;
      }
      this.status = "connected"; // a gateway that refuses us sends nothing
      this.take(JSON.parse(event.data) as Message);
      this.touch();
    };
    socket.onclose = ({ code, reason }) => {
      this.status = "lost";
      if (gaveUp || code === policyViolation) {
        this.status = "refused"; // trying again would not change that
        this.why = gaveUp || reason;
        return this.touch();
      }
      this.touch();
      this.loop.again();
    };
  }

  private say(command: object) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(command));
  }

  private touch() {
    if (this.scheduled) return;
    this.scheduled = true;
    const run = () => {
      this.scheduled = false;
      this.changed();
    };
    // A hidden page has no frames.
    if (document.hidden) setTimeout(run, 250);
    else requestAnimationFrame(run);
  }

  private take(m: Message) {
    switch (m.type) {
      case "resources":
        this.resources = m.resources.list;
        this.allResources = m.resources.all;
        break;
      case "watched":
        this.watched = new Map(m.watched.map((w) => [w.uri, w.updates]));
        break;
      case "value":
        this.open.get(m.uri)?.take(m);
        break;
      case "log":
        if (this.paused) break;
        this.dropped += m.dropped;
        this.log = [...this.log, ...m.entries.map((e) => ({ ...e, n: ++this.entries }))].slice(-logSize);
        break;
      default: {
        const { type: _, ...state } = m; // the members have the same names here
        Object.assign(this, state);
      }
    }
  }

  private sample() {
    if (this.stats) {
      const sum = (pick: (p: Stats["passed"][number]) => number) => this.stats!.passed.reduce((n, p) => n + pick(p), 0);
      this.updates.count(this.stats.updates);
      this.reads.count(this.stats.reads);
      this.messages.count(sum((p) => p.messages));
      this.bytes.count(sum((p) => p.bytes));
    }
    for (const [uri, open] of this.open) open.rate.count(this.watched.get(uri) ?? 0);
    this.touch();
  }

  // toggle follows a resource's value, or stops following it.
  toggle(uri: string) {
    if (this.open.delete(uri)) {
      this.say({ close: uri });
    } else {
      this.open.set(uri, new Open());
      this.say({ open: uri });
    }
    this.touch();
  }

  pause(paused: boolean) {
    this.paused = paused;
    this.say({ log: !paused });
    this.touch();
  }

  clear() {
    this.log = [];
    this.dropped = 0;
    this.touch();
  }
}
