/// <reference path="./pagewire.d.ts" />
import type { StandardSchema } from "pagewire/store";

/** With three differences to `registerResource`. */
export interface ResourceDescriptor<Value = unknown> extends Omit<ModelContextResource, "read"> {
  /** Or a path at the page's origin, which a server does not know. */
  uri: string;
  /** Default: gives the hook's value. May be new in each render. */
  read?: ResourceReadCallback | undefined;
  /** As for `shareStore`. What `read` returns is not checked. */
  schema?: StandardSchema<Value, unknown> | undefined;
}

/**
 * Offers the value of the last commit to agents while the component is mounted, as `shareStore` does. Subscriptions
 * survive a changed descriptor. Of two components with one URI, the second takes over when the first is gone.
 */
export function useResource<Value>(descriptor: ResourceDescriptor<Value>, value: NoInfer<Value>): void;
/** With `read`, the value only says when agents are notified. */
export function useResource(descriptor: ResourceDescriptor & { read: ResourceReadCallback }, value?: unknown): void;
