/**
 * The agent of the browser tests: the official MCP client, unmodified, inside the page. harness_test.go bundles it, and
 * test pages load it as the global `agent`.
 */
import { Client, type JSONRPCMessage, type RequestOptions, type Transport } from "@modelcontextprotocol/client";
import { TabClientTransport } from "@mcp-b/transports";

export type Era = "legacy" | "modern";

/** A client, with the notifications and errors that it has received. */
export class Agent {
  readonly client: Client;
  readonly updated: string[] = [];
  listChanged = 0;
  closed = false;
  errors: string[] = [];

  constructor(readonly era: Era) {
    // The default mode is the legacy era's: initialize.
    this.client = new Client(
      { name: "e2e", version: "1" },
      era === "modern" ? { versionNegotiation: { mode: { pin: "2026-07-28" } } } : {},
    );
    this.client.setNotificationHandler(
      "notifications/resources/updated",
      ({ params }) => void this.updated.push(params.uri),
    );
    this.client.setNotificationHandler("notifications/resources/list_changed", () => void this.listChanged++);
    this.client.onclose = () => (this.closed = true);
    this.client.onerror = (error) => void this.errors.push(String(error));
  }

  async subscribe(...uris: string[]): Promise<void> {
    if (this.era === "modern") await this.client.listen({ resourceSubscriptions: uris, resourcesListChanged: true });
    else for (const uri of uris) await this.client.subscribeResource({ uri });
  }

  async list(): Promise<string[]> {
    return (await this.client.listResources()).resources.map((r) => r.uri);
  }

  async read(uri: string): Promise<string> {
    const [first] = (await this.client.readResource({ uri })).contents;
    return first && "text" in first ? first.text : first ? `blob ${first.blob}` : "";
  }

  /** The names of all tools, sorted, as one text. */
  async toolNames(): Promise<string> {
    const { tools } = await this.client.listTools();
    return tools
      .map((t) => t.name)
      .sort()
      .join(" ");
  }

  /** Calls a tool and returns the text of its result, after "error: " if the result is an error. */
  async use(name: string, input: Record<string, unknown> = {}, options?: RequestOptions): Promise<string> {
    const { content, isError } = await this.client.callTool({ name, arguments: input }, options);
    return (isError ? "error: " : "") + (content[0] as { text: string }).text;
  }
}

/** Connects a client of that era by pagewire.connect(), or by another transport. */
export async function connect(era: Era, transport: Transport = pagewire.connect()): Promise<Agent> {
  const agent = new Agent(era);
  await agent.client.connect(transport);
  return agent;
}

/** The private MessagePort as a transport, by the handshake that any script of the page's origin can make. */
export class PortTransport implements Transport {
  onmessage?: (message: JSONRPCMessage) => void;
  onclose?: () => void;
  readonly #port: MessagePort;

  constructor(target: Window = window, origin = location.origin) {
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    port1.onmessage = ({ data }) => this.onmessage?.(data);
    port1.addEventListener("close", () => this.onclose?.());
    target.postMessage({ type: "pagewire:connect" }, origin, [port2]);
  }

  async start(): Promise<void> {
    this.#port.start();
  }

  async send(message: JSONRPCMessage): Promise<void> {
    this.#port.postMessage(message);
  }

  async close(): Promise<void> {
    this.#port.close();
    this.onclose?.();
  }
}

/** Pagewire's own transport. */
export const pagewireTransport = (): Transport => pagewire.connect();

/** The transport of @mcp-b's clients, unmodified: an envelope around window.postMessage. */
export const tab = (): Transport => new TabClientTransport({ targetOrigin: location.origin }) as unknown as Transport;

/** Waits until `condition` holds, at most `most` milliseconds. */
export async function until(condition: () => boolean, most = 60_000): Promise<void> {
  for (const end = performance.now() + most; !condition(); ) {
    if (performance.now() > end) throw new Error(`waited ${most} ms for ${condition}`);
    await sleep(5);
  }
}

/** The failed expectations of a test, by their descriptions. */
let unexpected: Record<string, unknown> = {};

export function expect(what: string, got: unknown, want: unknown): void {
  if (JSON.stringify(got) !== JSON.stringify(want)) unexpected[what] = { got, want };
}

/** Expects `part` in a text, or in the JSON of any other value. */
export function expectPart(what: string, got: unknown, part: string): void {
  const text = typeof got === "string" ? got : JSON.stringify(got);
  if (!text.includes(part)) unexpected[what] = { got: text, want: `${part} in it` };
}

export function takeUnexpected(): Record<string, unknown> {
  const all = unexpected;
  unexpected = {};
  return all;
}

export const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

/** Returns the error that a call throws, as "Name: message", or "" if it throws nothing. */
export function thrown(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    return error instanceof Error || error instanceof DOMException ? `${error.name}: ${error.message}` : String(error);
  }
  return "";
}

/** Returns the JSON-RPC error with which a promise rejects, as [code, message, reason]. */
export async function refusal(promise: Promise<unknown>): Promise<unknown[]> {
  try {
    return ["resolved", await promise];
  } catch (error) {
    const { code, message, data } = error as { code: number; message: string; data?: { reason?: string } };
    return [code, message, data?.reason ?? ""];
  }
}
