/**
 * Tools for taking references to intrinsics; used by intrinsics.ts early, and by binary.ts late.
 */

const { bind, call } = Function.prototype;

/**
 * Makes a method a function that takes its `this` first. Calling a bound function looks nothing up.
 */
export const uncurry = bind.bind(call as never) as <T, A extends unknown[], R>(
  method: (this: T, ...args: A) => R,
) => (self: T, ...args: A) => R;

/** A getter of a prototype as a function; it throws for an object that is not of that interface. */
export const getter = <T, K extends keyof T>(prototype: T, name: K) =>
  uncurry(Object.getOwnPropertyDescriptor(prototype, name)!.get as (this: unknown) => T[K]);

/**
 * A subclass that owns copies of its parent's methods and inherits nothing else: used like the
 * original, untouched by later patches. (Node does the same to the classes of its own library.)
 */
export const safe = <C extends new (...args: never[]) => object>(Class: C): C => {
  class Safe extends (Class as unknown as new (...args: unknown[]) => object) {
    // WebKit's default constructor hands its arguments on by Array's iterator, which the page may
    // have patched.
    constructor(first?: unknown, second?: unknown) {
      super(first, second);
    }
  }
  Reflect.ownKeys(Class.prototype).map((key) =>
    Reflect.defineProperty(Safe.prototype, key, Object.getOwnPropertyDescriptor(Class.prototype, key)!),
  );
  return (Reflect.setPrototypeOf(Safe.prototype, null), Safe as unknown as C);
};

/**
 * A member of the document, by the prototype: a user's <img name="baseURI"> hides the document's
 * own member. Only the model context is read from the document: a library may have put its own
 * there.
 */
export const ofDocument = (name: string) => Reflect.get(Document.prototype, name, document);

/**
 * The model context of the document or the navigator, by its methods: a user's <img
 * name="modelContext"> is none.
 */
export const modelContext = (): ModelContext | undefined =>
  [document.modelContext, navigator.modelContext].find(
    (one) => typeof (one?.registerResource ?? (one as { registerTool?: unknown })?.registerTool) === "function",
  );

export const isObject = (value: unknown): value is object =>
  (typeof value === "object" && value !== null) || typeof value === "function";
