/// <reference path="./pagewire.d.ts" />
import type { StandardSchema } from "pagewire/store";

/** A resource as for `registerResource`, with three differences. */
export interface ResourceDescriptor<Value = unknown> extends Omit<ModelContextResource, "read"> {
  /**
   * As for `registerResource`, or a path at the page's own origin, starting with `/`. A component that is rendered on a
   * server does not know that origin.
   */
  uri: string;
  /** Default: agents read the value of the hook. It may be a new function in each render; the latest is called. */
  read?: ResourceReadCallback | undefined;
  /**
   * The schema of the hook's value. As for `shareStore`, agents get its JSON Schema, and in development each read
   * checks the value. The result of `read` is not checked.
   */
  schema?: StandardSchema<Value, unknown> | undefined;
}

/**
 * Offers a resource to agents while the component is mounted. Importing this installs the page API.
 *
 * Agents read the value of the last commit: a string as text, any other value as JSON. The default `mimeType` of JSON
 * is "application/json"; a value without JSON reads as null. Agents are notified when a commit brings a value that
 * differs by `Object.is`, the comparison of React itself. A changed descriptor withdraws the resource and offers it
 * again; subscriptions survive that.
 *
 * A refusal by `registerResource` is an error on the console, never an exception. If two components have the same URI,
 * the first offers it. The second reports that on the console, and takes over when the first is gone.
 */
export function useResource<Value>(descriptor: ResourceDescriptor<Value>, value: NoInfer<Value>): void;
/** If the descriptor has a `read`, the value serves only to notify agents of changes. */
export function useResource(descriptor: ResourceDescriptor & { read: ResourceReadCallback }, value?: unknown): void;
