/**
 * The interface between the two halves of the page layer: the early part, which every page carries
 * (dist/pagewire.js), and the late part, which comes with the core when the first agent does
 * (late.ts, in dist/pagewire.core.js).
 *
 * The page layer works without a core: the registry is complete in itself. Changes before a core
 * starts need no queue, because a new core gets all present registrations.
 */
import type { Core, CoreOptions, PortCore, Start } from "../../link/link.ts";
import type { PagewireOptions, PagewireStats, PagewireTransport } from "../../pagewire.d.mts";
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

/** What the parts of the page layer have in common. A member that one of them sets is missing before. */
interface Shared {
  /** All live cores as one; undefined without a live core. Set by cores.ts. */
  core?: AllCores | undefined;
  /** Key (canonical URI or template) to registration, in order of registration. */
  entries: Map<string, Entry>;
  /**
   * Called with true at each registration, and with false when the last resource has gone:
   * resourcetools.ts.
   */
  populated?: (any: boolean) => void;
  /** The model context that Pagewire has made, until one of its methods for tools is called. */
  unused?: object | undefined;
  /**
   * The annotations of tools that install.ts guards, by the tool's name: a polyfill drops unknown
   * ones. Undefined for a name that was refused.
   */
  annotated: Map<string, Annotations | undefined>;
  /**
   * Called with each notified key, and with "" when the list changes; then `relisted` is the key
   * that was registered or withdrawn. Set by webmcp/resourcetools.ts, once loaded.
   */
  changed?: (key: string, relisted?: string) => void;
  /**
   * Called with each key that was notified, once per turn of the event loop: for content scripts.
   */
  hint?: (key: string) => void;
  /** The counters that `pagewire.stats()` copies. */
  stats: Omit<PagewireStats, "resources">;
}

// Without a prototype: a page could observe the lookups of missing members in Object.prototype, and
// learn from them that an agent is there (TestExtension).
export const shared = {
  __proto__: null,
  entries: new SafeMap(),
  annotated: new SafeMap(),
  stats: { core: "none", ports: 0, reading: 0, watched: 0, reads: 0, notified: 0, unknown: 0, deaths: 0 },
} as unknown as Shared;

/** The URLs of the core's files, and the core's options. */
export interface CoreSettings extends CoreOptions {
  /** The URL of pagewire.core.js. */
  core: string;
  /** The other origins whose windows may connect. */
  origins: readonly string[];
  /**
   * The resources that tools depend on, as the page gave them. Once loaded, pagetools.ts notices a
   * new value.
   */
  freshState?: PagewireOptions["freshState"];
  /** The tools that may navigate to another document. */
  navigatingTools?: PagewireOptions["navigatingTools"];
  /**
   * Whether agents get the error message of a failed read. Default false: a page's messages may
   * hold secrets.
   */
  exposeErrors?: boolean | string;
  /** The URL of the page's ticket for the gateway of its service. */
  ticket?: string;
}

/**
 * A function that posts a frame to a core elsewhere. The link sets `receive`, which takes that
 * core's frames; null ends the link. With `slow` a frame leaves the page in a later task.
 */
export interface Post {
  (frame: string): void;
  slow?: boolean;
  receive?: (calls: readonly (readonly unknown[])[] | null) => void;
}

/** A gateway to connect to: its URL as it was given, or the function that posts frames to it. */
export type Gateway = string | Post;

/** The input of late.ts from the early part. */
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
 * The part of WebMCP's own ModelContext for tools. A polyfill's need not be an EventTarget.
 * Firefox's is older: tools/oldercontext.ts.
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
  readonly inputSchema?: { readonly type?: unknown; readonly properties?: { readonly [name: string]: unknown } };
  readonly outputSchema?: { readonly type?: unknown };
  readonly annotations?: Annotations;
  readonly window: Window;
}

/**
 * Carries a port's messages: as objects or, with `text`, as JSON text. Both methods are called in
 * microtasks, in order.
 * `closed` is called once, as the last; `failure` means that the port did not end as intended.
 */
export type Carrier = { closed(reason: string, failure: boolean): void } & (
  | { text?: undefined; deliver(message: object): void }
  | { text: true; deliver(message: string): void }
);

/** One MCP session, from its carrier's side. */
export interface Port {
  /** Takes a message that arrived: any text. The core answers also text that is no JSON-RPC. */
  receive(text: string): void;
  /** Says whether the carrier can take more. While it cannot, the core keeps one update per URI. */
  writable(on: boolean): void;
  close(reason: string): void;
}

/** The session of a transport of pagewire.connect(). `send` rejects, or throws, once it has ended. */
export interface Session {
  send(text: string | undefined): Promise<void> | void;
  close(): void;
}

/** dist/pagewire.core.js. */
export interface LateModule {
  arrive(early: Early): Late;
  start: Start;
}

/** Imports the LateModule: load.ts. */
export type Load = (settings: CoreSettings) => Promise<LateModule>;

/**
 * The member `adopt` of the extension's page layer, which has no core. A page's own script that
 * comes later calls it to pass on its options and loader.
 */
export type Adopt = (base: string, options: PagewireOptions, load: Load) => void;

/** A page's `execute`, and the arguments of one of its calls. */
export type Execute = (...args: unknown[]) => unknown;
export type GuardedArguments = [input?: { pagewire_since?: unknown }, ...unknown[]];

/** The late part, for the early part. */
export interface Late {
  /** Starts a core if there is none. Rejects with the error of `failed`. */
  need(): Promise<PortCore>;
  /** Opens a port, once there is a core, for a transport of pagewire.connect(). */
  connect(transport: PagewireTransport): Session;
  /** Answers a call of one of Pagewire's own tools. Never rejects. */
  answer(name: string, input: unknown, signal: AbortSignal | undefined): Promise<object>;
  /**
   * Calls a page's tool, unless the caller does not know the state on which the tool depends.
   * The tool's own `execute` gets the input without the caller's revision.
   */
  guard(name: string, execute: Execute, self: unknown, args: GuardedArguments): Promise<unknown>;
  /** Runs a tool method, such as registerTool, of the model context that Pagewire has made. */
  tool(context: object, name: string, subject: object, rest: readonly unknown[]): Promise<unknown>;
  /** Takes the payload of an envelope that was posted to the window for a server. */
  envelope(payload: unknown): Promise<void>;
  /** Opens a port that the MessagePort carries. `source` is the window that sent it. */
  serve(port: MessagePort, source: MessageEventSource | null): Promise<void>;
  /**
   * Starts the core; with a gateway, connects to that instead, again whenever the connection ends.
   * With a devtoolstooldiscovery it answers that, and all later ones.
   */
  warmUp(whom: Gateway | Event | undefined): Promise<void>;
  /** Closes all ports and gives the core up, for good. */
  shutDown(reason: string): void;
}
