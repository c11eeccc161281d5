/**
 * The interface between the two halves of the page layer: the part that every page carries (dist/pagewire.js) and the
 * part that comes with the core when an agent does (late.ts, in dist/pagewire.core.js).
 *
 * The page layer works without a core: the registry is complete in itself. Changes before a core starts need no
 * queue, because a new core is given the registrations as they are then.
 */
import type { Core, CoreOptions, PortCore, Start } from "../link/link.ts";
import type { PagewireOptions, PagewireStats } from "../pagewire.d.ts";
import { type kept, SafeMap } from "./intrinsics.ts";

/** A registration. */
export interface Entry {
  /** The resource without `read`, as JSON text, for cores. */
  readonly descriptor: string;
  readonly mimeType: string | undefined;
  readonly read: (uri: string, options: { params: object; signal: AbortSignal }) => unknown;
  /** Stops listening to the signal that it was registered with. */
  readonly release: () => void;
}

/** The cores, for the registry. */
export interface AllCores extends Pick<Core, "register" | "unregister" | "stop"> {
  touch(key: string): void;
}

export const shared = {
  /** All cores that are live, as one; undefined without any: cores.ts. */
  core: undefined as AllCores | undefined,
  /** Key (canonical URI or template) to registration, in the order in which they were made. */
  entries: new SafeMap<string, Entry>(),
  /** Called with true at each registration, and with false when the last resource has gone: resourcetools.ts. */
  populated: (_any: boolean): void => {},
  /** The model context that Pagewire has made, until one of its methods for tools is called. */
  unused: undefined as object | undefined,
  /** The annotations of tools that a polyfill has registered, by name: it keeps only those that it knows (install.ts). */
  annotated: new SafeMap<string, Annotations>(),
  /** Called with each key that is notified, and with "" when the list changes: late/resourcetools.ts, once loaded. */
  changed: undefined as ((key: string) => void) | undefined,
  /** Called with each key that was notified, once per turn of the event loop: for content scripts. */
  hint: (_key: string): void => {},
  /** What `pagewire.stats()` copies. */
  stats: { core: "none", ports: 0, reading: 0, watched: 0, reads: 0, notified: 0, unknown: 0, deaths: 0 } as Omit<
    PagewireStats,
    "resources"
  >,
};

/** The places of the core's files, and the core's options. */
export interface CoreSettings extends CoreOptions {
  /** Where pagewire.core.js is. */
  core: string;
  /** The other origins whose windows may connect. */
  origins: readonly string[];
  /** What tools depend on, as the page gave it: pagetools.ts, once it is loaded, looks when it is set. */
  freshState?: PagewireOptions["freshState"];
  /** The tools that may lead to another document. */
  navigatingTools?: PagewireOptions["navigatingTools"];
  /** Whether agents are told why a read failed. Default false: a page's messages may hold secrets. */
  exposeErrors?: boolean;
  /** Where the page has its ticket for the gateway of a service. */
  ticket?: string;
}

/**
 * A function that posts a frame to a core elsewhere. The link sets `receive`, which takes that core's frames; null ends
 * the link.
 */
export interface Post {
  (frame: string): void;
  receive?: (calls: readonly (readonly unknown[])[] | null) => void;
}

/** A gateway to connect to: its URL as it was given, or the function that posts frames to it. */
export type Gateway = string | Post;

/** What late.ts gets from the part that was there before it. */
export interface Early {
  start: Start;
  shared: typeof shared;
  kept: typeof kept;
  settings: CoreSettings;
  /** Dispatches an event on `pagewire`, in a microtask. */
  emit(type: string, detail: object): void;
  /** Reports, once, that the core cannot be started; the result says what to do. */
  failed(cause: unknown): Error;
  /** The canonical form of a URI at the page's origin; throws for any other. */
  own(uri: string): string;
  /** The tools of the page's model context, if it has any. */
  tooling(): Tooling | undefined;
  /** Whether a tool of that name is one of the three that Pagewire itself has registered there. */
  projected(name: string): boolean;
}

/**
 * The part of WebMCP's own ModelContext that is about tools. A polyfill's need not be an EventTarget. Firefox's is older:
 * late/oldercontext.ts.
 */
export interface Tooling {
  registerTool(tool: object, options: { signal: AbortSignal }): Promise<void>;
  unregisterTool?(name: string): void;
  getTools?(): Promise<readonly RegisteredTool[]>;
  executeTool?(tool: RegisteredTool, input: object, options: { signal: AbortSignal }): Promise<string | null>;
}

/** WebMCP's annotations of a tool, by name. */
export type Annotations = { readonly [hint: string]: unknown };

export interface RegisteredTool {
  readonly name: string;
  readonly title?: string;
  readonly description: string;
  readonly inputSchema?: { readonly type?: unknown };
  readonly outputSchema?: { readonly type?: unknown };
  readonly annotations?: Annotations;
  readonly window: Window;
}

/**
 * What carries a port's messages: as objects, or as JSON text where `text` says so. Both methods are called in
 * microtasks, in order; `closed` once, as the last, with `failure` where the port did not end as intended.
 */
export type Carrier = { closed(reason: string, failure: boolean): void } & (
  | { text?: undefined; deliver(message: object): void }
  | { text: true; deliver(message: string): void }
);

/** One MCP session, from its carrier's side. */
export interface Port {
  /** Hands over a message that arrived: any text. The core answers also what is no JSON-RPC. */
  receive(text: string): void;
  /** Says whether the carrier can take more. While it cannot, the core keeps one update per URI. */
  writable(on: boolean): void;
  close(reason: string): void;
}

/** dist/pagewire.core.js. */
export interface LateModule {
  arrive(early: Early): Late;
  start: Start;
}

/** Imports it: load.ts. */
export type Load = (settings: CoreSettings) => Promise<LateModule>;

/**
 * How a page's own script hands over to a page layer that was there before it and has no core: the extension's, as its
 * member `adopt`.
 */
export type Adopt = (base: string, options: PagewireOptions, load: Load) => void;

/** What late.ts offers. */
export interface Late {
  /** Starts a core if there is none. Rejects with what `failed` gives. */
  need(): Promise<PortCore>;
  /** Opens a port, once there is a core. */
  open(carrier: Carrier): Promise<Port>;
  /** Answers a call of one of Pagewire's own tools. Never rejects. */
  answer(name: string, input: unknown, signal: AbortSignal | undefined): Promise<object>;
  /** Runs a method for tools of the model context that Pagewire has made. */
  tool(context: object, name: string, subject: object, rest: readonly unknown[]): Promise<unknown>;
  /** Takes what came to the window in an envelope for a server. */
  envelope(payload: unknown): Promise<void>;
  /** Opens a port that the MessagePort carries. `source` is the window that sent it. */
  serve(port: MessagePort, source: MessageEventSource | null): Promise<void>;
  /** Starts the core; or connects to the gateway, again whenever the connection ends. */
  warmUp(gateway: Gateway | undefined): Promise<void>;
  /** Closes all ports and gives the core up, for good. */
  shutDown(reason: string): void;
}
