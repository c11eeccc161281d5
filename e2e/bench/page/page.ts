/**
 * The benchmark's part in a page: the same work for every library by the same driver, which speaks JSON-RPC on the wire
 * itself. No client library has a part in a figure, except where the first list is timed (start.go). Every job returns
 * figures by name.
 */
import { Client, type Transport } from "@modelcontextprotocol/client";

export { TabClientTransport } from "@mcp-b/transports";

type Figures = Record<string, number>;

interface Message {
  id?: number;
  method?: string;
  params?: { uri?: string };
  result?: { contents?: { uri: string; text: string }[] };
  error?: { message: string };
}

interface Wire {
  send(message: object): void;
  receive?: (message: Message) => void;
}

/** The API that both libraries, and a browser with WebMCP, have. */
interface Context {
  registerResource(resource: object): void;
  notifyResourceUpdated?: (uri: string) => void;
  mcpServer?: { server: { sendResourceUpdated(params: { uri: string }): Promise<void> } };
}
const context = (): Context => (document as unknown as { modelContext: Context }).modelContext;

const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

const uriOf = (name: string | number): string => `${location.origin}/state/${name}`;

/** Does a job when the page has loaded, and reports its figures, or its error. */
export function report(job: () => Promise<Figures>): void {
  addEventListener("load", async () => {
    const body = await job().then(JSON.stringify, String);
    void fetch("/result", { method: "POST", body });
  });
}

// Wires

const channel = "mcp-default";

/** The window envelope of @mcp-b, which Pagewire's pages answer too. Resolves when a server has answered. */
export function overWindow(): Promise<Wire> {
  return new Promise((done) => {
    const wire: Wire = {
      send: (payload) => postMessage({ channel, type: "mcp", direction: "client-to-server", payload }, location.origin),
    };
    addEventListener("message", ({ data, source }) => {
      if (source !== window || data?.channel !== channel || data.direction !== "server-to-client") return;
      if (typeof data.payload === "string") done(wire);
      else wire.receive?.(data.payload);
    });
    wire.send("mcp-check-ready" as unknown as object);
  });
}

/** Pagewire's own wire: a port for each client. */
export async function overPort(): Promise<Wire> {
  const { port1, port2 } = new MessageChannel();
  const wire: Wire = { send: (message) => port1.postMessage(message) };
  port1.onmessage = ({ data }) => wire.receive?.(data);
  postMessage({ type: "pagewire:connect" }, location.origin, [port2]);
  return wire;
}

const echoed = ({ id, params }: { id: number; params: { uri: string } }): object => ({
  jsonrpc: "2.0",
  id,
  result: {
    contents: [{ uri: params?.uri, mimeType: "text/plain", text: params?.uri === uriOf("large") ? megabyte : small }],
  },
});

/** The floor: the receiver answers each request at once. */
export async function windowEcho(): Promise<Wire> {
  addEventListener("message", ({ data, source }) => {
    if (source !== window || data?.direction !== "client-to-server") return;
    const payload = typeof data.payload === "string" ? "mcp-server-ready" : echoed(data.payload);
    postMessage({ channel, type: "mcp", direction: "server-to-client", payload }, location.origin);
  });
  return overWindow();
}

export async function portEcho(): Promise<Wire> {
  const { port1, port2 } = new MessageChannel();
  port2.onmessage = ({ data }) => port2.postMessage(echoed(data));
  const wire: Wire = { send: (message) => port1.postMessage(message) };
  port1.onmessage = ({ data }) => wire.receive?.(data);
  return wire;
}

// The driver

class Driver {
  readonly #wire: Wire;
  readonly #waiting = new Map<number, (message: Message) => void>();
  #id = 0;
  /** The number of notifications by method; last is the time of the last one. */
  told: Record<string, number> = {};
  last = 0;

  constructor(wire: Wire) {
    this.#wire = wire;
    wire.receive = (message) => {
      if (message.id === undefined) {
        this.told[message.method!] = (this.told[message.method!] ?? 0) + 1;
        this.last = performance.now();
        return;
      }
      const done = this.#waiting.get(message.id);
      this.#waiting.delete(message.id);
      done?.(message);
    };
  }

  ask(method: string, params: object): Promise<Message> {
    const id = ++this.#id;
    return new Promise((done) => {
      this.#waiting.set(id, done);
      this.#wire.send({ jsonrpc: "2.0", id, method, params });
    });
  }

  async must(method: string, params: object): Promise<NonNullable<Message["result"]>> {
    const answer = await this.ask(method, params);
    if (!answer.result) throw new Error(`${method}: ${answer.error?.message}`);
    return answer.result;
  }

  async initialize(): Promise<this> {
    await this.must("initialize", {
      protocolVersion: "2025-11-25",
      capabilities: {},
      clientInfo: { name: "bench", version: "1" },
    });
    this.#wire.send({ jsonrpc: "2.0", method: "notifications/initialized" });
    return this;
  }
}

type Connect = () => Promise<Wire>;

const connected = async (connect: Connect): Promise<Driver> => new Driver(await connect()).initialize();

// The page's side

const small = "x".repeat(100);
const megabyte = "0123456789abcdef".repeat(1 << 16);

function offer(name: string | number, text: () => string): string {
  const uri = uriOf(name);
  context().registerResource({
    uri,
    name: String(name),
    mimeType: "text/plain",
    read: async () => ({ contents: [{ uri, mimeType: "text/plain", text: text() }] }),
  });
  return uri;
}

// Jobs

const quantile = (sorted: number[], q: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))]!;
const ascending = (list: number[]): number[] => list.sort((a, b) => a - b);

/**
 * Round trips, one after the other. A browser interprets the code of about the first 1,000, and compiles the hot code
 * at the same time, on the same few processors. first is the mean of 300 of those. p50 and p99 are of n round trips
 * after 1,500 others. The clock has steps of 5 us, so p50 is of groups of ten; p99 is of single ones.
 */
async function roundTrips(
  n: number,
  once: () => Promise<unknown>,
): Promise<{ first: number; p50: number; p99: number }> {
  const began = performance.now();
  for (let i = 0; i < 300; i++) await once();
  const first = (performance.now() - began) / 300;
  for (let i = 300; i < 1500; i++) await once();
  const singles: number[] = [];
  const groups: number[] = [];
  for (let i = 0; i < n; i += 10) {
    const start = performance.now();
    let before = start;
    for (let j = 0; j < 10; j++) {
      await once();
      const now = performance.now();
      singles.push(now - before);
      before = now;
    }
    groups.push((before - start) / 10);
  }
  return {
    first: 1000 * first,
    p50: 1000 * quantile(ascending(groups), 0.5),
    p99: 1000 * quantile(ascending(singles), 0.99),
  };
}

export async function read(connect: Connect, n: number): Promise<Figures> {
  const uri = offer("small", () => small);
  const driver = await connected(connect);
  const answer = await driver.must("resources/read", { uri });
  if (answer.contents?.[0]?.text !== small) throw new Error("read something else");
  return roundTrips(n, () => driver.must("resources/read", { uri }));
}

export async function echo(connect: Connect, n: number): Promise<Figures> {
  const driver = new Driver(await connect());
  return roundTrips(n, () => driver.must("resources/read", { uri: uriOf("small") }));
}

export async function large(connect: Connect, n: number): Promise<Figures> {
  offer("large", () => megabyte);
  return megabytes(await connected(connect), n);
}

export const largeEcho = async (connect: Connect, n: number): Promise<Figures> =>
  megabytes(new Driver(await connect()), n);

async function megabytes(driver: Driver, n: number): Promise<Figures> {
  const times: number[] = [];
  for (let i = -3; i < n; i++) {
    const start = performance.now();
    const { contents } = await driver.must("resources/read", { uri: uriOf("large") });
    if (i >= 0) times.push(performance.now() - start);
    if (contents?.[0]?.text.length !== megabyte.length) throw new Error("read something else");
  }
  return { ms: quantile(ascending(times), 0.5) };
}

/** Returns a function that notifies of a change, as each library can: @mcp-b by its server, to all clients. */
function notifier(): (uri: string) => void {
  const c = context();
  if (c.notifyResourceUpdated) return (uri) => c.notifyResourceUpdated!(uri);
  return (uri) => void c.mcpServer!.server.sendResourceUpdated({ uri });
}

/**
 * Does some work while the main thread is pinged all the time, until it has been quiet for 300 ms. Returns the sum of
 * the waits of more than 0.25 ms. A wait that begins more than 20 ms after the last event is not counted: the machine
 * causes it, not the work.
 */
function pinged(work: () => void, lastEvent: () => number): Promise<number> {
  return new Promise((done) => {
    const { port1, port2 } = new MessageChannel();
    let [busy, pings, quiet] = [0, 0, 0];
    let before = performance.now();
    port1.onmessage = () => {
      const now = performance.now();
      const wait = now - before;
      before = now;
      if (pings++ === 1000) {
        busy = 0;
        work();
        quiet = performance.now();
      } else if (wait > 0.25 && now - wait - Math.max(quiet, lastEvent()) < 20) {
        busy += wait;
        if (wait > 20) quiet = now;
      }
      if (quiet && now - Math.max(quiet, lastEvent()) > 300) done(busy);
      else port2.postMessage(0);
    };
    port2.postMessage(0);
  });
}

export async function notify(connect: Connect, n: number): Promise<Figures> {
  const uri = offer("state", () => small);
  const driver = await connected(connect);
  const notified = notifier();
  for (let i = 0; i < 200; i++) notified(uri); // to warm up the page's code
  await sleep(300);
  const count = (): number => driver.told["notifications/resources/updated"] ?? 0;

  const figures: Figures = {};
  for (const who of ["subscriber", "nobody"]) {
    if (who === "subscriber")
      await driver.ask("resources/subscribe", { uri }); // @mcp-b refuses it, and notifies all clients
    else await driver.ask("resources/unsubscribe", { uri });
    await sleep(200);
    const already = count();
    let read = false;
    figures[`${who} busy`] = await pinged(
      () => {
        for (let i = 0; i < n; i++) notified(uri);
        void driver.must("resources/read", { uri }).then(() => (read = true));
      },
      () => (read ? driver.last : Infinity),
    );
    figures[`${who} messages`] = count() - already;
  }
  return figures;
}

/**
 * Measures the time from the start of a script, its compilation included, until the API exists. It runs in an idle page:
 * in a page that is loading, the browser's other work takes most of the time.
 */
export async function evaluate(source: string): Promise<Figures> {
  await sleep(300);
  const script = document.createElement("script");
  script.text = source;
  const start = performance.now();
  document.head.append(script);
  if (typeof context().registerResource !== "function") throw new Error("there is no API");
  return { ms: performance.now() - start };
}

/** Measures the time from nothing to the list of the page's resources. */
export async function firstList(transport: () => Transport): Promise<Figures> {
  const start = performance.now();
  const agent = new Client({ name: "bench", version: "1" });
  await agent.connect(transport());
  const { resources } = await agent.listResources();
  const time = performance.now() - start;
  if (resources.length !== 1) throw new Error(`listed ${resources.length} resources instead of one`);
  return { ms: time };
}

/**
 * The floor of a first list: a transport that answers at once, when the page has fetched and compiled Pagewire's files,
 * of which none runs.
 */
export function compiled(): Transport {
  const link = Object.assign(document.createElement("link"), { rel: "modulepreload", href: "/dist/pagewire.core.js" });
  const preloaded = new Promise((done, failed) => Object.assign(link, { onload: done, onerror: failed }));
  document.head.append(link);
  const files = Promise.all([preloaded, WebAssembly.compileStreaming(fetch("/dist/pagewire.wasm"))]);
  const transport: Transport = {
    start: async () => {},
    close: async () => {},
    async send(message) {
      await files;
      if (!("id" in message && "method" in message)) return;
      const { id, method, params } = message;
      const result =
        method === "initialize"
          ? {
              protocolVersion: params?.protocolVersion,
              capabilities: { resources: {} },
              serverInfo: { name: "floor", version: "1" },
            }
          : { resources: [{ uri: uriOf("state"), name: "state" }] };
      queueMicrotask(() => transport.onmessage?.({ jsonrpc: "2.0", id: id!, result } as never));
    },
  };
  return transport;
}

/** Reads as an agent does, and stays until the browser has had time to store the compiled code. */
export function stay(connect: Connect, n: number, ms: number): (first: Figures) => Promise<Figures> {
  return async (first) => {
    const uri = offer("stay", () => small);
    const driver = await connected(connect);
    for (let i = 0; i < n; i++) await driver.must("resources/read", { uri });
    await sleep(ms);
    return first;
  };
}
