/// <reference path="./pagewire.d.ts" />
import type { StoreDescriptor } from "pagewire/store";
import type { MaybeRefOrGetter } from "vue";

/**
 * Offers a ref, a reactive object or a getter's value to agents, until the component or effect scope ends.
 *
 * As `shareStore`, but agents are notified of changes at any depth. Subscriptions survive a changed descriptor.
 */
export function useResource<Value>(
  descriptor: MaybeRefOrGetter<StoreDescriptor<NoInfer<Value>>>,
  source: MaybeRefOrGetter<Value>,
): void;
