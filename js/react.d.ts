/// <reference path="./pagewire.d.ts" />
import type { StandardSchema } from "pagewire/store";

/** As for `registerResource`, except: */
export interface ResourceDescriptor<Value = unknown> extends Omit<ModelContextResource, "read"> {
  /** Absolute, or a path at the page's origin. */
  uri: string;
  /** Default: returns the hook's value. May be a new function in each render. */
  read?: ResourceReadCallback | undefined;
  /** As for `shareStore`. What `read` returns is not checked. */
  schema?: StandardSchema<Value, unknown> | undefined;
}

/**
 * Offers the value of the last commit to agents while the component is mounted, as `shareStore` does. Subscriptions
 * survive a changed descriptor. If two components use one URI, the second takes over when the first is gone.
 */
export function useResource<Value>(descriptor: ResourceDescriptor<Value>, value: NoInfer<Value>): void;
/** With `read`, the value only decides when agents are notified. */
export function useResource(descriptor: ResourceDescriptor & { read: ResourceReadCallback }, value?: unknown): void;
