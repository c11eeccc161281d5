/// <reference path="./pagewire.d.ts" />
import type { StandardSchema } from "pagewire/store";

/** The description of a resource: as `registerResource` takes it, with three differences. */
export interface ResourceDescriptor<Value = unknown> extends Omit<ModelContextResource, "read"> {
  /**
   * As for `registerResource`, or a path: what starts with `/` is at the page's own origin, which a component that is
   * rendered on a server does not know.
   */
  uri: string;
  /** Without it, agents read the value of the hook. May be a new function in each render; the latest is called. */
  read?: ResourceReadCallback | undefined;
  /**
   * The value of the hook fits this, which is checked at each read in development, and agents get its JSON Schema: as
   * for `shareStore`. What a `read` gives is not checked.
   */
  schema?: StandardSchema<Value, unknown> | undefined;
}

/**
 * Offers a resource to agents while the component is mounted. Importing this installs the page API.
 *
 * Agents read the value of the last commit: a string as text, anything else as JSON (`mimeType` is then
 * "application/json" unless the descriptor says otherwise; a value without JSON reads as null). They are told of a
 * change when a commit brings a value that is not the same by `Object.is`, the comparison that React makes too. A
 * descriptor that says something new withdraws the resource and offers it anew; subscriptions survive that.
 *
 * What `registerResource` refuses is an error on the console, never an exception. Of two components with one URI the
 * first offers it; the second says so on the console, and takes over when the first is gone.
 */
export function useResource<Value>(descriptor: ResourceDescriptor<Value>, value: NoInfer<Value>): void;
/** With a `read` of its own the value is needed only to tell agents of changes. */
export function useResource(descriptor: ResourceDescriptor & { read: ResourceReadCallback }, value?: unknown): void;
