/// <reference path="./pagewire.d.ts" />
import type { StoreDescriptor } from "pagewire/store";
import type { MaybeRefOrGetter } from "vue";

/**
 * Offers a ref, a reactive object or the value of a getter to agents, until the component (or the effect scope) that
 * calls it is gone. Importing this installs the page API; on a server that renders it does nothing.
 *
 * The descriptor, what agents read and what is refused are as for `shareStore`. Agents are told of a change at any depth.
 * The descriptor may be a ref or a getter too: a change in it withdraws the resource and offers it anew, and
 * subscriptions survive that.
 */
export function useResource<Value>(
  descriptor: MaybeRefOrGetter<StoreDescriptor<NoInfer<Value>>>,
  source: MaybeRefOrGetter<Value>,
): void;
