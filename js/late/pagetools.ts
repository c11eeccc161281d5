/**
 * The page's own tools, served to MCP clients: those that the page has registered with WebMCP's registerTool, natively
 * or with a polyfill. The cores get their list, and the model context's own executeTool runs them.
 *
 * Tools of other windows are served by those windows. Pagewire's own three are left out, since MCP clients have
 * resources. A failure is a result with isError, as in MCP; it has the page's words only if the page exposes its
 * errors.
 */
import { isObject } from "../page/basics.ts";
import { isArray } from "./binary.ts";
import {
  aborted,
  apply,
  defineProperty,
  error,
  listen,
  parse,
  SafeMap,
  SafePromise,
  stringify,
  unlisten,
  warn,
} from "./intrinsics.ts";
import { olderContexts } from "./oldercontext.ts";
import { describe } from "./reads.ts";
import { failure } from "./refusal.ts";
import type { FreshState } from "../pagewire.d.ts";
import type { Revisions } from "./revisions.ts";
import type { Early, RegisteredTool, Tooling } from "../page/shared.ts";

/** The outcome of a call: the JSON text of the result, or the changed URIs because of which the tool did not run. */
export type Ran = { readonly text: string } | { readonly stale: readonly string[] };

/**
 * How long a core waits for the tools, in ms: a busy browser takes up to 100, and a polyfill may never answer.
 */
const maxLook = 500;

/** URIs that a tool may depend on: bridge/gateway's limit. */
const maxFresh = 32;

const { setTimeout, clearTimeout } = globalThis;
const { hasOwn } = Object;

type Serving = Required<Tooling> & EventTarget;

/** `tell` hands the JSON text of the tools to the cores. */
export function pageTools(
  { settings, shared, tooling, projected, own }: Early,
  revisions: Revisions,
  tell: (tools: string) => void,
) {
  const older = olderContexts();
  let tools = new SafeMap<string, RegisteredTool>();
  let served: Serving | undefined;
  /** The JSON text that the cores were told last. */
  let told = "";
  let busy = false;
  let again = false;
  let looking: Promise<void> | undefined;

  /** Lists the tools. A change meanwhile makes it list once more. */
  async function look(): Promise<void> {
    // Our own context is empty until it is used, and asking it would register our three tools, which the page sees.
    if (!served || served === shared.unused) return;
    again = true;
    if (busy) return;
    busy = true;
    try {
      while (again) {
        again = false;
        const listed = await apply(served.getTools, served, []);
        const next = new SafeMap<string, RegisteredTool>();
        const described: object[] = [];
        for (let i = 0; i < listed.length; i++) {
          const tool = listed[i]!;
          const { name, title, description, inputSchema, annotations } = tool;
          if (tool.window !== globalThis.window || projected(name) || next.has(name)) continue;
          // MCP's input is an object, and clients refuse a whole list for one schema that says otherwise.
          if ((inputSchema?.type ?? "object") !== "object") {
            warn(`pagewire: the tool ${name} is not served to MCP clients: its inputSchema is not of type object.`);
            continue;
          }
          let state: object | undefined;
          try {
            state = freshOf(name);
          } catch (cause) {
            error(`pagewire: the tool ${name} is not served to MCP clients: ${(cause as Error).message}`);
            continue;
          }
          next.set(name, tool);
          described[described.length] = {
            name,
            ...(title && { title }),
            description,
            inputSchema: { type: "object", ...inputSchema },
            ...(annotations && { annotations: { readOnlyHint: !!annotations.readOnlyHint } }),
            ...(state && { _meta: { "pagewire/freshState": state } }),
          };
        }
        tools = next;
        const text = stringify(described);
        if (text !== told) tell((told = text));
      }
    } catch (cause) {
      error("pagewire: the page's tools cannot be listed:", cause);
    } finally {
      busy = false;
    }
  }
  const onchange = () => void look();
  let fresh = hasOwn(settings, "freshState") ? settings.freshState : undefined;
  // Set by configure(), which every page carries: a hook there would be 25 bytes for all.
  defineProperty(settings, "freshState", {
    enumerable: false, // a worker is sent the settings
    get: () => fresh,
    set(given: typeof fresh) {
      fresh = given;
      onchange();
    },
  });

  /**
   * The URIs that a tool depends on, as cores are told. Throws if the page's setting is wrong: better no tool than an
   * unguarded one.
   */
  function freshOf(name: string): object | undefined {
    if (!fresh || !hasOwn(fresh, name)) return;
    const given = fresh[name] as readonly string[] | FreshState;
    const { uris, onStale } = (isArray(given) ? { uris: given } : given) as FreshState;
    if (!isArray(uris) || uris.length > maxFresh || (onStale && onStale !== "refuse" && onStale !== "tell"))
      throw new TypeError(
        `freshState.${name} is neither an array of at most ${maxFresh} URIs nor {uris, onStale: "refuse" or "tell"}.`,
      );
    const canonical: string[] = [];
    for (let i = 0; i < uris.length; i++) canonical[i] = own(uris[i]!);
    return { uris: canonical, ...(onStale && { onStale }) };
  }

  /** The URIs of a condition that have changed since it was true. */
  function changedOf(unless: string): string[] {
    const found: string[] = [];
    if (!unless) return found;
    const pairs = parse(unless) as [string, number][];
    for (let i = 0; i < pairs.length; i++) {
      const uri = pairs[i]![0];
      const revision = pairs[i]![1];
      if (revisions.of(uri) > revision) found[found.length] = uri;
    }
    return found;
  }

  /** Runs a tool in this turn, unless a URI in the condition `unless` has changed. Never rejects. Calls page code. */
  async function run(name: string, args: string, unless: string, signal: AbortSignal): Promise<Ran> {
    let result: object;
    try {
      const tool = tools.get(name);
      if (!tool || !served) throw new TypeError("it is no longer registered");
      const input = parse(args || "{}");
      // Polyfills of the older draft parse their input; a browser takes the object, and sees no such property on it.
      if (!("toString" in input && input.toString !== toString))
        defineProperty(input, "toString", { value: () => args || "{}" });
      const stale = changedOf(unless);
      if (stale.length) return { stale };
      const output = await apply(served.executeTool, served, [tool, input, { signal }]);
      result = output === null ? failure("the page was left before the tool had finished") : toResult(output);
    } catch (cause) {
      if (!aborted(signal)) error(`pagewire: the tool ${name} failed:`, cause);
      result = failure(settings.exposeErrors ? describe(cause) : "The tool failed.");
    }
    return { text: stringify(result) };
  }

  return {
    run,
    /**
     * Begins to list the tools, for a core that is being started. Returns whether the page can have tools.
     */
    prepare(): boolean {
      const holder = older.adapt(tooling());
      if (holder?.getTools && holder.executeTool && holder !== served) {
        if (served) unlisten(served, "toolchange", onchange);
        served = holder as Serving;
        try {
          listen(served, "toolchange", onchange);
        } catch {} // no EventTarget: then changes go unnoticed
      }
      looking = look();
      return !!served;
    },
    /**
     * Waits until the tools are listed, so that an agent's first list has them; `maxLook` at most, since page code
     * runs.
     */
    looked: async () =>
      await new SafePromise<void>((done) => {
        const timer = setTimeout(done, maxLook);
        void (async () => {
          await looking;
          clearTimeout(timer);
          done();
        })();
      }),
    /** The tools' JSON text, for a new core. */
    told: () => told,
    shutDown() {
      older.end();
      if (served) unlisten(served, "toolchange", onchange);
    },
  };
}

const { toString } = Object.prototype;

/** A CallToolResult of what executeTool gives: the text of a string as it is, of all else as JSON. */
function toResult(output: string): object {
  try {
    const value = parse(output);
    // The page's tool may have returned MCP's own shape, as MCP's servers and @mcp-b's do.
    if (isObject(value) && isContent((value as { content?: unknown }).content)) return value;
  } catch {} // a string
  return { content: [{ type: "text", text: output }] };
}

const isContent = (content: unknown): boolean => {
  if (!isArray(content)) return false;
  for (let i = 0; i < content.length; i++) if (typeof content[i]?.type !== "string") return false;
  return true;
};
