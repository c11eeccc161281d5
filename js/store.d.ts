/// <reference path="./pagewire.d.ts" />

/** The resource that a store becomes: as for `registerResource`, with three differences. */
export interface StoreDescriptor<T> extends Omit<ModelContextResource, "read"> {
  /** As for `registerResource`, or a path at the page's own origin, starting with `/`. */
  uri: string;
  /** Selects the part of the state that agents read. Default: all of it. Called at each change and at each read. */
  select?: ((state: T) => unknown) | undefined;
  /**
   * The schema of the contents. Agents get its JSON Schema, unless there is a `contentSchema`. In development
   * (`process.env.NODE_ENV` is not "production") each read checks the contents. If they do not fit, the read fails, and
   * the console shows the path of the first issue.
   */
  schema?: StandardSchema | undefined;
}

/** A schema of zod, valibot, arktype or another library that implements https://standardschema.dev. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    validate(value: unknown): StandardResult | Promise<StandardResult>;
    /** zod 4.2 and arktype 2.2 have it, and valibot by `toStandardJsonSchema`. Without it agents get no JSON Schema. */
    readonly jsonSchema?: { input(options: { target: "draft-2020-12" }): object } | undefined;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** The result of checking a value. If it has `issues`, the value does not fit. */
export interface StandardResult {
  readonly issues?:
    | readonly {
        readonly message: string;
        readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
      }[]
    | undefined;
}

/** A tool whose `execute` gets the output of a schema for the input. */
export interface TypedTool<Input> extends Omit<ModelContextTool, "inputSchema" | "execute"> {
  execute(input: Input, options: { signal: AbortSignal }): unknown;
}

/**
 * Returns a tool for `registerTool`. Its `inputSchema` is the JSON Schema of `schema`. Each input is checked. If it
 * does not fit, the call fails with the path of the first issue, and `execute` is not called.
 */
export function tool<Output>(schema: StandardSchema<unknown, Output>, tool: TypedTool<Output>): ModelContextTool;

/** A resource whose `read` returns a value, which agents get as JSON. */
export interface TypedResource<Value, URI extends string = string> extends Omit<ModelContextResource<URI>, "read"> {
  /** Called each time an agent reads the resource. */
  read(uri: string, options: ModelContextReadOptions<URI>): Value | PromiseLike<Value>;
}

/**
 * Returns a resource for `registerResource`. Its contents are the value that `read` returns, as JSON. The value must
 * fit `schema`: TypeScript checks that, and in development each read, as for `shareStore`. Agents get the JSON Schema
 * of `schema`, unless there is a `contentSchema`. The default `mimeType` is "application/json".
 */
export function resource<Value, const URI extends string = string>(
  schema: StandardSchema<Value, unknown>,
  resource: TypedResource<NoInfer<Value>, URI>,
): ModelContextResource<URI>;

/**
 * A store. It has `subscribe`, and `getState`, `getSnapshot`, `getValue`, `get` or `peek`. Without one of these it
 * passes its value to each listener. `subscribe` may return a function, or an object with `unsubscribe`.
 */
export interface AnyStore {
  // biome-ignore lint/suspicious/noExplicitAny: listeners get different arguments
  subscribe(listener: (...args: any[]) => void): unknown;
}

/** The type of a store's state, which `select` gets. */
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
 * Offers a store to agents until the returned function is called or `signal` aborts. Importing this installs the page
 * API; on a server that renders it does nothing.
 *
 * Agents read the current state, or the part that `select` returns: a string as text, any other value as JSON. The
 * default `mimeType` is "text/plain" or "application/json"; a value without JSON reads as null. Agents are notified
 * when the value differs from the one before by `Object.is`. A store with `getState` or `getSnapshot` promises not to
 * change its state in place. Any other store may do that: if it calls its listeners with the same object, agents are
 * notified too.
 *
 * Throws `TypeError` if `store` has no `subscribe`. A refusal by `registerResource` is an error on the console, never
 * an exception.
 */
export function shareStore<S extends AnyStore>(
  store: S,
  descriptor: StoreDescriptor<StateOf<S>>,
  options?: ModelContextRegisterResourceOptions,
): () => void;
