/**
 * WebMCP's own three methods, for the model context that Pagewire makes if the browser has none. A
 * polyfill that loads after Pagewire finds that context and does nothing, so the context needs the
 * polyfill's methods. The early part has only stubs (install.ts): this file comes with
 * pagewire.core.js at the first call, without any wasm.
 *
 * They behave as in Chromium 156, with the same messages, within one window: tools of other
 * documents are not listed, and exposedTo changes nothing. As in polyfills of the older draft,
 * executeTool also takes its input as JSON text.
 */
import { isObject, uncurry } from "../early/basics.ts";
import {
  aborted,
  apply,
  defineProperty,
  error,
  exec,
  listen,
  microtask,
  parse,
  SafeAbortController,
  SafeMap,
  SafePromise,
  stringify,
  unlisten,
} from "../common/intrinsics.ts";
import { loopback } from "../common/loopback.ts";
import { describe } from "../resources/reads.ts";
import { encode, unencodable } from "../common/refusal.ts";
import type { Early } from "../early/shared.ts";

interface Tool {
  /** The tool's entry in getTools without its window, as JSON text. */
  readonly described: string;
  readonly name: string;
  readonly execute: (input: object, options: { signal: AbortSignal }) => unknown;
}

/** An argument of the page: any member may be missing, or of another type. */
interface Given {
  name?: unknown;
  title?: unknown;
  description?: unknown;
  inputSchema?: unknown;
  outputSchema?: unknown;
  execute?: unknown;
  annotations?: { [hint: string]: unknown } | null;
  origin?: unknown;
  window?: unknown;
}
type Options = { signal?: AbortSignal; exposedTo?: ArrayLike<unknown> } | null | undefined;

const { deleteProperty } = Reflect;
const { DOMException, Event, setTimeout, URL } = globalThis;
const dispatch = uncurry(EventTarget.prototype.dispatchEvent);

const required = (value: unknown, what: string): string => {
  if (value === undefined) throw new TypeError(`Failed to read the '${what}' property: Required member is undefined.`);
  return `${value}`;
};
const fail = (name: string, message: string): never => {
  throw new DOMException(message, name);
};

/** The JSON text of a schema, "" without one. */
const jsonOf = (schema: unknown, what: string): string => {
  if (schema === undefined) return "";
  const text = isObject(schema) && stringify(schema);
  if (!text) throw new TypeError(`Failed to read the '${what}' property: it is no object that JSON can hold.`);
  return text;
};

/**
 * A constructor of events about a tool. Its name is that of the member, also when the build
 * shortens names.
 */
const eventOf = (name: string) =>
  ({
    [name]: class extends Event {
      readonly toolName: string;
      constructor(type: string, init: EventInit & { toolName?: unknown } = {}) {
        super(type, init);
        this.toolName = `${init.toolName ?? ""}`;
      }
    },
  })[name]!;
const events: { readonly [name: string]: ReturnType<typeof eventOf> } = {
  ToolActivatedEvent: eventOf("ToolActivatedEvent"),
  ToolCancelEvent: eventOf("ToolCancelEvent"),
};

/**
 * Adds members that only users of the context need: the constructors of its events, and its event
 * handlers. A handler that the page has set before was a plain property until now.
 */
function equip(context: EventTarget & { [name: string]: unknown }) {
  const expose = (target: object, name: string, descriptor: PropertyDescriptor) =>
    defineProperty(target, name, { configurable: true, ...descriptor });
  for (const name in events)
    if (!(name in globalThis)) expose(globalThis, name, { writable: true, value: events[name] });
  const types = ["toolchange", "toolactivated", "toolcancel"];
  for (let i = 0; i < types.length; i++) {
    const type = types[i]!;
    const before = context[`on${type}`];
    let handler: ((event: Event) => void) | null = null;
    const run = (event: Event) => apply(handler!, context, [event]);
    expose(context, `on${type}`, {
      enumerable: true,
      get: () => handler,
      set(given: typeof handler) {
        handler = typeof given === "function" ? given : null;
        (handler ? listen : unlisten)(context, type, run);
      },
    });
    context[`on${type}`] = before;
  }
}

/** A keyword, such as native-agent, is no origin. It names no other page, so it is not refused. */
const keyword = /^[a-z][a-z-]*$/;

const isSecure = (origin: unknown) => {
  try {
    const { protocol, hostname } = new URL(`${origin}`);
    return protocol === "https:" || (protocol === "http:" && exec(loopback, hostname));
  } catch {
    return false;
  }
};

export function modelContextTools({ shared, settings }: Early) {
  const tools = new SafeMap<string, Tool>();

  /**
   * Throws the reason of an aborted signal. Otherwise calls `onabort` at its abort, until the
   * result is called.
   */
  const follow = (signal: AbortSignal | undefined, onabort: () => void) => {
    if (!signal) return () => {};
    if (aborted(signal)) throw signal.reason;
    listen(signal, "abort", onabort);
    return () => unlisten(signal, "abort", onabort);
  };

  const changed = (context: object) => microtask(() => dispatch(context as EventTarget, new Event("toolchange")));
  const say = (context: object, event: string, type: string, toolName: string) =>
    dispatch(context as EventTarget, new events[event]!(type, { toolName }));

  const methods: { [name: string]: (context: object, subject: Given, ...rest: never[]) => Promise<unknown> } = {
    async registerTool(
      context,
      { annotations, description, execute, inputSchema, name: given, outputSchema, title },
      options: Options,
    ) {
      const text = required(description, "description");
      if (typeof execute !== "function")
        throw new TypeError("Failed to read the 'execute' property: The given value is not a function.");
      const schema = jsonOf(inputSchema, "inputSchema");
      const output = jsonOf(outputSchema, "outputSchema");
      const name = required(given, "name");
      if (tools.has(name)) fail("InvalidStateError", "Duplicate tool name");
      if (!exec(/^[\w.-]{1,128}$/, name)) fail("InvalidStateError", "Invalid tool name");
      if (!text) fail("InvalidStateError", "Description is required");
      const origins = options?.exposedTo ?? [];
      for (let i = 0; i < origins.length; i++) {
        if (!exec(keyword, `${origins[i]}`) && !isSecure(origins[i]))
          fail("SecurityError", "Only secure origins are allowed in the exposedTo list.");
      }
      const release = follow(options?.signal, () => {
        release();
        if (tools.get(name) !== tool) return;
        tools.delete(name);
        changed(context);
      });
      const tool: Tool = {
        name,
        described: stringify({
          name,
          title: title === undefined ? "" : `${title}`,
          description: text,
          ...(schema && { inputSchema: parse(schema) }),
          ...(output && { outputSchema: parse(output) }),
          ...(annotations && {
            annotations: {
              readOnlyHint: !!annotations.readOnlyHint,
              untrustedContentHint: !!annotations.untrustedContentHint,
              consequentialHint: !!annotations.consequentialHint,
              debugging: !!annotations.debugging,
            },
          }),
          origin: settings.origin,
        }),
        execute: execute as Tool["execute"],
      };
      tools.set(name, tool);
      changed(context);
    },

    async getTools() {
      // In a later turn, as in the browser: the list includes tools that are registered later in
      // this turn.
      await new SafePromise<void>((done) => void setTimeout(done));
      const list: { name: string }[] = [];
      tools.forEach(({ described }, name) => {
        let i = list.length;
        for (; i && list[i - 1]!.name > name; i--) list[i] = list[i - 1]!;
        list[i] = { ...parse(described), window };
      });
      return list;
    },

    async executeTool(context, { name, origin, window: where }, given: unknown, options: Options) {
      const tool = tools.get(required(name, "name"));
      if (!tool || where !== window || required(origin, "origin") !== settings.origin)
        return fail("UnknownError", `There is no tool '${name}' of that origin and window.`);
      const text = given === undefined ? "{}" : typeof given === "string" ? given : isObject(given) && stringify(given);
      const input: unknown = text && parse(text);
      if (!isObject(input)) throw new TypeError("invalid input object: value is not an object");
      const abort: AbortController = new SafeAbortController();
      const signal = options?.signal;
      return await new SafePromise<string>((resolve, reject) => {
        const release = follow(signal, () => {
          reject(signal!.reason);
          abort.abort(signal!.reason);
          say(context, "ToolCancelEvent", "toolcancel", tool.name);
        });
        say(context, "ToolActivatedEvent", "toolactivated", tool.name);
        void (async () => {
          try {
            const output = await apply(tool.execute, undefined, [input, { signal: abort.signal }]);
            resolve(encode(output));
          } catch (cause) {
            // The caller learns no more than from a browser; the console has the cause.
            if (!aborted(abort.signal)) error(`pagewire: the tool ${name} failed:`, cause);
            const why = describe(cause) === unencodable ? unencodable : "Tool was executed but the invocation failed.";
            reject(new DOMException(why, "UnknownError"));
          } finally {
            release();
          }
        })();
      });
    },
  };

  return {
    async tool(context: object, name: string, subject: object, rest: readonly unknown[]): Promise<unknown> {
      if (shared.unused) {
        // The context is in use from now on, so it gets Pagewire's own tools, too.
        shared.unused = undefined;
        equip(context as never);
        shared.populated?.(shared.entries.size > 0);
      }
      return await methods[name]!(context, subject, rest[0] as never, rest[1] as never);
    },
    shutDown: () => {
      tools.clear();
      for (const name in events)
        if ((globalThis as { [name: string]: unknown })[name] === events[name]) deleteProperty(globalThis, name);
    },
  };
}
