/// <reference path="./pagewire.d.ts" />

/** As for `registerResource`, except: */
export interface StoreDescriptor<T> extends Omit<ModelContextResource, "read"> {
  /** Absolute, or a path at the page's origin. */
  uri: string;
  /** The part that agents read; default all. Called at each change and read. */
  select?: ((state: T) => unknown) | undefined;
  /**
   * Agents get its JSON Schema, unless there is a `contentSchema`. Unless `process.env.NODE_ENV` is "production", a read
   * that does not fit fails, and the console has the first issue's path.
   */
  schema?: StandardSchema | undefined;
}

/** Of zod, valibot, arktype or others (https://standardschema.dev). */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    validate(value: unknown): StandardResult | Promise<StandardResult>;
    /** zod 4.2 and arktype 2.2 have it, and valibot by `toStandardJsonSchema`. Without it agents get no JSON Schema. */
    readonly jsonSchema?: { input(options: { target: "draft-2020-12" }): object } | undefined;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** With `issues`, the value does not fit. */
export interface StandardResult {
  readonly issues?:
    | readonly {
        readonly message: string;
        readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
      }[]
    | undefined;
}

export interface TypedTool<Input> extends Omit<ModelContextTool, "inputSchema" | "execute"> {
  execute(input: Input, options: { signal: AbortSignal }): unknown;
}

/** For `registerTool`. An input that does not fit fails, with the first issue's path. */
export function tool<Output>(schema: StandardSchema<unknown, Output>, tool: TypedTool<Output>): ModelContextTool;

export interface TypedResource<Value, URI extends string = string> extends Omit<ModelContextResource<URI>, "read"> {
  read(uri: string, options: ModelContextReadOptions<URI>): Value | PromiseLike<Value>;
}

/** For `registerResource`. `read` gives a value for JSON; the schema works as for `shareStore`. */
export function resource<Value, const URI extends string = string>(
  schema: StandardSchema<Value, unknown>,
  resource: TypedResource<NoInfer<Value>, URI>,
): ModelContextResource<URI>;

/**
 * Has `getState`, `getSnapshot`, `getValue`, `get` or `peek`, or passes its value to listeners. `subscribe` returns a
 * function, or an object with `unsubscribe`.
 */
export interface AnyStore {
  // biome-ignore lint/suspicious/noExplicitAny: listeners get different arguments
  subscribe(listener: (...args: any[]) => void): unknown;
}

/** The type of the state. */
export type StateOf<S> = S extends { getState(): infer T }
  ? T
  : S extends { getSnapshot(): infer T }
    ? T
    : S extends { getValue(): infer T }
      ? T
      : S extends { get(): infer T }
        ? T
        : S extends { peek(): infer T }
          ? T
          : S extends { subscribe(run: (value: infer T) => void, ...rest: never): unknown }
            ? T
            : unknown;

/**
 * Offers a store to agents until the returned function is called or `signal` aborts. Does nothing on a server.
 *
 * A string reads as "text/plain", any other value as "application/json", and null if it has no JSON. Agents are notified
 * when the value differs by `Object.is`, or when a store without `getState` and `getSnapshot` reports the same object.
 *
 * Throws `TypeError` without `subscribe`. Where `registerResource` would throw, it only logs an error.
 */
export function shareStore<S extends AnyStore>(
  store: S,
  descriptor: StoreDescriptor<StateOf<S>>,
  options?: ModelContextRegisterResourceOptions,
): () => void;
