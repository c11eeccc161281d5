/**
 * Puts the page API where the IDL says, as a browser's bindings would: property attributes, names,
 * lengths, brand checks, argument counts. Every definition can be undone.
 *
 * A native (or polyfilled) ModelContext is extended, never replaced or wrapped: brand checks refuse
 * a Proxy, and extensions and DevTools go on seeing the original. A context that has
 * `registerResource` already is left alone.
 */
import { convert, fail } from "./convert.ts";
import { getter, modelContext, uncurry } from "./basics.ts";
import { attributes, operations } from "./idl.gen.ts";
import {
  apply,
  construct,
  defineProperty,
  deleteProperty,
  descriptorOf,
  exception,
  getPrototypeOf,
  SafeWeakMap,
  warn,
} from "./intrinsics.ts";
import { since } from "./resourcetools.ts";
import { type CoreSettings, type Execute, type GuardedArguments, type Late, shared, type Tooling } from "./shared.ts";

/** The three methods, for converted arguments. `where` is the start of their error messages. */
export type Methods = { readonly [name: string]: (args: readonly unknown[], where: string) => void };

/** Undoes a definition. */
type Undo = () => void;

/**
 * Defines a property; undoing it restores the former property, unless other code has redefined it
 * since.
 */
export function define(target: object, name: string, descriptor: PropertyDescriptor): Undo {
  const before = descriptorOf(target, name);
  const ours: PropertyDescriptor = { __proto__: null, configurable: true, ...descriptor } as PropertyDescriptor;
  // A frozen object does not change; the page then finds no such method.
  if (!defineProperty(target, name, ours)) warn(`pagewire: '${name}' cannot be defined`);
  return () => {
    const present = descriptorOf(target, name);
    if (!present || present.value !== ours.value || present.get !== ours.get) return;
    if (before) defineProperty(target, name, before);
    else deleteProperty(target, name);
  };
}

export interface Installed {
  readonly undo: Undo;
  /** The page's model context. */
  readonly context: object;
  /** Set if another library's registerResource is there. It stays. */
  readonly foreign?: true;
}

/** The message if the page has a registerResource that is not Pagewire's. */
export const foreignContext =
  "pagewire: modelContext.registerResource is defined by another library or the browser: Pagewire's agents do not see what is registered with it.";

/** A tool as the page registers it: any member may be missing, or of another type. */
interface Given {
  name: string;
  title?: unknown;
  description?: unknown;
  annotations?: object;
  outputSchema?: unknown;
  inputSchema?: { type?: unknown; properties?: object };
  execute?: Execute;
}

/**
 * Installs the page API in this window. `late` loads the late part. `projected` says whether a tool
 * is one of Pagewire's own three.
 */
export function install(
  methods: Methods,
  late: () => Promise<Late>,
  settings: CoreSettings,
  projected: (name: string) => boolean,
): Installed {
  const undo: Undo[] = [];
  const undoAll = () => {
    for (let i = undo.length; i--; ) undo[i]!(); // in reverse order
  };
  const add = (target: object, name: string, descriptor: PropertyDescriptor) =>
    void (undo[undo.length] = define(target, name, descriptor));

  /**
   * The tool that is registered in its place. Whoever calls it, in whatever way, calls `execute`, so
   * this is where a call is guarded: webmcp/guard.ts, which comes only if the call gives a revision
   * or the tool depends on a state.
   */
  const guarded = (tool = {} as Given): object => {
    // Of the tool itself, since a getter of its class may have private fields.
    const { annotations, description, execute, inputSchema, name, outputSchema, title } = tool;
    // A polyfill of an older draft drops unknown hints. Without the hints, agents would not ask their
    // user. First, since @mcp-b's lists the tool within its call.
    shared.annotated.set(name, { ...annotations });
    return {
      ...tool,
      annotations,
      description,
      name,
      outputSchema,
      title,
      inputSchema:
        (shared.entries.size || settings.freshState?.[name]) && !projected(name)
          ? {
              __proto__: inputSchema,
              ...(inputSchema ?? { type: "object" }),
              properties: { ...inputSchema?.properties, pagewire_since: since },
            }
          : inputSchema,
      execute:
        execute?.call &&
        (async (...args: GuardedArguments) =>
          await (args[0]?.pagewire_since || settings.freshState?.[name]
            ? (await late()).guard(name, execute, tool, args)
            : apply(execute, tool, args))),
    };
  };

  let context: object | undefined = modelContext();
  const { registerTool, executeTool } = (context ?? {}) as Tooling;
  if (registerTool && executeTool)
    add(context!, "registerTool", {
      writable: true,
      async value(this: Tooling, tool: Given, options = {} as never) {
        const name = tool?.name;
        const before = shared.annotated.get(name);
        try {
          await apply(registerTool, this, [guarded(tool), options]);
        } catch (cause) {
          shared.annotated.set(name, before); // of the tool that has the name, if any
          throw cause;
        }
      },
    });
  if (context && "registerResource" in context) {
    warn(foreignContext);
    return { undo: undoAll, context, foreign: true };
  }
  const builtIn = !!context;
  const contexts = makeContexts();
  if (!context) {
    context = contexts.of(document);
    add(globalThis, "ModelContext", { writable: true, value: ModelContext });
    add(ModelContext.prototype, Symbol.toStringTag as never, { value: "ModelContext" });
    // A polyfill of registerTool that loads later finds a model context and does nothing. So this
    // context needs the polyfill's methods. modelcontext.ts, which comes with pagewire.core.js,
    // runs them.
    const check = acceptsOnly((shared.unused = context));
    for (const name of ["registerTool", "getTools", "executeTool"]) {
      const { [name]: value } = {
        async [name](this: object, subject: Given, ...rest: unknown[]) {
          check(this);
          const copy = guarded(subject); // now, since the page may change it
          return await (await late()).tool(this, name, copy, rest);
        },
      };
      add(ModelContext.prototype, name, { writable: true, enumerable: true, value });
    }
    // The mark of an MCP server: without it @mcp-b/global would replace document.modelContext.
    add(ModelContext.prototype, "__isBrowserMcpServer", { value: true });
  }

  // The prototype of the context's class. A polyfill's context may be a plain object: then the
  // object itself.
  const above = getPrototypeOf(context)!;
  const prototype = above === Object.prototype ? context : above;
  // A native getter is the best brand check: it accepts contexts of other windows and refuses
  // impostors and Proxies.
  const toolchange = builtIn && descriptorOf(prototype, "ontoolchange")?.get;
  const brand = toolchange ? uncurry(toolchange) : builtIn ? acceptsOnly(context) : contexts.brand;
  for (const operation of operations)
    add(prototype, operation[0], {
      writable: true,
      enumerable: true,
      value: method(operation, brand, context, methods),
    });

  for (const [owner, name] of attributes) {
    const Interface = (globalThis as never)[owner] as { prototype: object };
    const holder = owner === "Document" ? document : navigator;
    const check = acceptsOnly(holder);
    const get = owner === "Document" && !builtIn ? contexts.of : (self: unknown) => (check(self), context);
    if (!(name in Interface.prototype)) add(Interface.prototype, name, { enumerable: true, get: attribute(name, get) });
  }
  return { undo: undoAll, context };
}

/**
 * The minimal ModelContext of a browser that has none: an event target. `install` adds the three
 * methods, and stubs of WebMCP's methods for tools.
 */
const { ModelContext } = {
  // A member of an object literal keeps its name when the build shortens names.
  ModelContext: class extends EventTarget {
    constructor() {
      super();
      throw new TypeError("Illegal constructor");
    }
  },
};

/**
 * The model contexts of a window whose browser has none. Each document has its own, also one from a
 * DOMParser.
 */
function makeContexts() {
  /** Document to its context, and each context to itself. */
  const contexts = new SafeWeakMap<object, object>();
  const defaultView = getter(Document.prototype, "defaultView");
  return {
    of(document: unknown): object {
      defaultView(document); // throws for any other object
      let context = contexts.get(document as object);
      if (!context) {
        context = construct(EventTarget, [], ModelContext) as object;
        contexts.set(document as object, context);
        contexts.set(context, context);
      }
      return context;
    },
    brand(self: unknown): void {
      if (!self || contexts.get(self as object) !== self) fail("Illegal invocation");
    },
  };
}

/** A brand check that accepts one object. */
const acceptsOnly = (only: object) => (self: unknown) => {
  if (self !== only) fail("Illegal invocation");
};

function attribute(name: string, get: (self: unknown) => unknown): () => unknown {
  // A getter in an object literal is named "get modelContext", and is no constructor.
  return descriptorOf(
    {
      get [name]() {
        return get(this);
      },
    },
    name,
  )!.get!;
}

function method(
  [name, types]: (typeof operations)[number],
  brand: (self: unknown) => unknown,
  context: object,
  methods: Methods,
): (...args: unknown[]) => void {
  const where = `Failed to execute '${name}' on 'ModelContext': `;
  const run = methods[name]!;
  // A method in an object literal is no constructor either.
  const { [name]: result } = {
    [name](this: unknown, ...args: unknown[]) {
      if (this !== context) brand(this); // first the comparison: a native brand check costs 0.1 us
      if (!args.length) fail(where + "1 argument required, but only 0 present.");
      for (let i = 0; i < types.length; i++) args[i] = convert(types[i]!, args[i], where);
      if (this !== context) throw exception("InvalidStateError", where + "The document is not active.");
      run(args, where);
    },
  };
  defineProperty(result!, "length", { value: 1 });
  return result!;
}
