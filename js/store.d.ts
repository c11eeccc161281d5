/// <reference path="./pagewire.d.ts" />

/** The description of a store: as `registerResource` takes it, with three differences. */
export interface StoreDescriptor<T> extends Omit<ModelContextResource, "read"> {
  /** As for `registerResource`, or a path: what starts with `/` is at the page's own origin. */
  uri: string;
  /** Selects the part of the state that agents read. Default: all of it. Called at each change and at each read. */
  select?: ((state: T) => unknown) | undefined;
  /**
   * What agents read fits this. Agents get its JSON Schema, unless there is a `contentSchema`. In development
   * (`process.env.NODE_ENV` is not "production") each read is checked: one that does not fit fails, and the console has
   * the path of the first issue.
   */
  schema?: StandardSchema | undefined;
}

/** A schema of zod, valibot, arktype or another library that knows https://standardschema.dev. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    validate(value: unknown): StandardResult | Promise<StandardResult>;
    /** zod 4.2 and arktype 2.2 have it, and valibot by `toStandardJsonSchema`. Without it agents get no JSON Schema. */
    readonly jsonSchema?: { input(options: { target: "draft-2020-12" }): object } | undefined;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** What a schema says of a value: with `issues` it does not fit. */
export interface StandardResult {
  readonly issues?:
    | readonly {
        readonly message: string;
        readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
      }[]
    | undefined;
}

/** A tool whose `execute` gets what its schema makes of the input. */
export interface TypedTool<Input> extends Omit<ModelContextTool, "inputSchema" | "execute"> {
  execute(input: Input, options: { signal: AbortSignal }): unknown;
}

/**
 * A tool for `registerTool`. Its `inputSchema` is the JSON Schema of `schema`, and each input is checked: one that does
 * not fit fails the call, with the path of the first issue, and `execute` is not called.
 */
export function tool<Output>(schema: StandardSchema<unknown, Output>, tool: TypedTool<Output>): ModelContextTool;

/** A resource whose `read` gives a value, and not the text of it. */
export interface TypedResource<Value, URI extends string = string> extends Omit<ModelContextResource<URI>, "read"> {
  /** Called each time an agent reads the resource. */
  read(uri: string, options: ModelContextReadOptions<URI>): Value | PromiseLike<Value>;
}

/**
 * A resource for `registerResource`: its contents are the JSON of what `read` gives, which fits `schema`. TypeScript
 * checks that, and in development each read does, as for `shareStore`. Agents get the JSON Schema of `schema`, unless
 * there is a `contentSchema`, and `mimeType` is "application/json" unless there is another.
 */
export function resource<Value, const URI extends string = string>(
  schema: StandardSchema<Value, unknown>,
  resource: TypedResource<NoInfer<Value>, URI>,
): ModelContextResource<URI>;

/**
 * A store: it has `subscribe`, and `getState`, `getSnapshot`, `getValue`, `get` or `peek`; or it passes its value to
 * each listener. `subscribe` may return a function, or an object with `unsubscribe`.
 */
export interface AnyStore {
  // biome-ignore lint/suspicious/noExplicitAny: listeners get different arguments
  subscribe(listener: (...args: any[]) => void): unknown;
}

/** The state of a store, as `select` gets it. */
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
 * Agents read the state, or what `select` gives of it, as it is then: a string as text, all else as JSON (`mimeType` is
 * "text/plain" or "application/json" unless the descriptor says otherwise; a value without JSON reads as null). They
 * are told of a change when that is not the same as before by `Object.is`. If the store has no `getState` or
 * `getSnapshot`, which promise that state is never changed in place, and calls with the object that it had before, they
 * are told too.
 *
 * Throws `TypeError` if what it is given has no `subscribe`. What `registerResource` refuses is an error on the
 * console, never an exception.
 */
export function shareStore<S extends AnyStore>(
  store: S,
  descriptor: StoreDescriptor<StateOf<S>>,
  options?: ModelContextRegisterResourceOptions,
): () => void;
