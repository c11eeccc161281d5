/// <reference path="./pagewire.d.ts" />
import type { StoreDescriptor } from "pagewire/store";
import type { MaybeRefOrGetter } from "vue";

/**
 * Offers a ref, a reactive object or the value of a getter to agents, until the calling component or effect scope ends.
 * Importing this installs the page API; on a server that renders it does nothing.
 *
 * The descriptor, the contents and the refusals are as for `shareStore`. Agents are notified of a change at any depth.
 * The descriptor may be a ref or a getter too. A change of it withdraws the resource and offers it again; subscriptions
 * survive that.
 */
export function useResource<Value>(
  descriptor: MaybeRefOrGetter<StoreDescriptor<NoInfer<Value>>>,
  source: MaybeRefOrGetter<Value>,
): void;
