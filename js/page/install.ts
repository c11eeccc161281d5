/**
 * Puts the page API where the IDL says, as a browser's bindings would: property attributes, names, lengths, brand
 * checks, argument counts. Every definition can be undone.
 *
 * A native (or polyfilled) ModelContext is extended, never replaced or wrapped: brand checks refuse a Proxy, and
 * extensions and DevTools go on seeing the original. Who has `registerResource` already is left alone.
 */
import { convert } from "./convert.ts";
import { uncurry } from "./basics.ts";
import { attributes, operations } from "./idl.gen.ts";
import { construct, defineProperty, deleteProperty, descriptorOf, getPrototypeOf, warn } from "./intrinsics.ts";

/** The three methods, on converted arguments. `where` is how the messages of their errors start. */
export type Methods = { readonly [name: string]: (args: readonly unknown[], where: string) => void };

/** Undoes what was defined. */
type Undo = () => void;

/** Defines a property; undoing it restores what was there, unless somebody else has redefined it since. */
export function define(target: object, name: string, descriptor: PropertyDescriptor): Undo {
  const before = descriptorOf(target, name);
  const ours: PropertyDescriptor = { __proto__: null, configurable: true, ...descriptor } as PropertyDescriptor;
  // A frozen object stays as it is; the page then sees that there is no such method.
  if (!defineProperty(target, name, ours)) warn(`pagewire: '${name}' cannot be defined`);
  return () => {
    const present = descriptorOf(target, name);
    if (!present || present.value !== ours.value || present.get !== ours.get) return;
    if (before) defineProperty(target, name, before);
    else deleteProperty(target, name);
  };
}

/** Installs the page API in this window. */
export function install(methods: Methods): Undo {
  const undo: Undo[] = [];
  const undoAll = () => {
    for (let i = undo.length; i--; ) undo[i]!(); // last first: the way back is the way there
  };
  const add = (target: object, name: string, descriptor: PropertyDescriptor) => void (undo[undo.length] = define(target, name, descriptor));

  let context: object | undefined = document.modelContext ?? navigator.modelContext;
  if (context && "registerResource" in context) {
    warn("pagewire: modelContext.registerResource is already defined, by another library or the browser. It is left alone, and Pagewire's agents do not see what is registered with it.");
    return undoAll;
  }
  const native = !!context;
  if (!context) {
    const { prototype } = ModelContext;
    defineProperty(prototype, Symbol.toStringTag, { configurable: true, value: "ModelContext" });
    context = construct(EventTarget, [], ModelContext);
    add(globalThis, "ModelContext", { writable: true, value: ModelContext });
  }

  // The class's prototype. Another polyfill's may be a plain object: then the object itself.
  const above = getPrototypeOf(context)!;
  const prototype = above === Object.prototype ? context : above;
  // A native getter is the best brand check: it accepts contexts of other windows and refuses impostors and Proxies.
  const toolchange = native && descriptorOf(prototype, "ontoolchange")?.get;
  const brand = toolchange ? uncurry(toolchange) : isExactly(context);
  for (const operation of operations) add(prototype, operation[0], { writable: true, enumerable: true, value: method(operation, brand, methods) });

  for (const [owner, name] of attributes) {
    const Interface = (globalThis as never)[owner] as { prototype: object };
    const holder = owner === "Document" ? document : navigator;
    if (!(name in holder)) add(Interface.prototype, name, { enumerable: true, get: attribute(name, isExactly(holder), context) });
  }
  return undoAll;
}

/** The minimal ModelContext of a browser that has none: an event target with the three methods, and no tools. */
class ModelContext extends EventTarget {
  constructor() {
    super();
    throw new TypeError("Failed to construct 'ModelContext': Illegal constructor");
  }
}

/** A brand check that accepts one object. */
const isExactly = (only: object) => (self: unknown) => {
  if (self !== only) throw new TypeError("Illegal invocation");
};

function attribute(name: string, brand: (self: unknown) => unknown, value: object): () => unknown {
  // A getter in an object literal has the name, "get modelContext", and is no constructor.
  return descriptorOf({ get [name]() { return brand(this), value; } }, name)!.get!; // prettier-ignore
}

function method([name, types, required]: (typeof operations)[number], brand: (self: unknown) => unknown, methods: Methods): (...args: unknown[]) => void {
  const where = `Failed to execute '${name}' on 'ModelContext': `;
  const run = methods[name]!;
  // A method in an object literal is no constructor either.
  const { [name]: result } = {
    [name](this: unknown, ...args: unknown[]) {
      brand(this);
      const given = args.length;
      if (given < required) throw new TypeError(`${where}${required} argument${required > 1 ? "s" : ""} required, but only ${given} present.`);
      for (let i = 0; i < types.length; i++) args[i] = convert(types[i]!, args[i], where);
      run(args, where);
    },
  };
  defineProperty(result!, "length", { value: required });
  return result!;
}
