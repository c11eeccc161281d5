/**
 * dist/vue.js: `useResource`, which offers reactive state to agents for as long as its scope lives.
 *
 * Watchers do all of it, and Vue ends watchers with their scope. On a server the outer watcher runs
 * once, but shareStore does nothing there.
 */
import { toValue, watch } from "vue";
import { shareStore } from "../share/store.ts";
import type { useResource as Composable } from "../vue.d.ts";

export const useResource: typeof Composable = (descriptor, source) => {
  const get = () => toValue(source);
  const store = { get, subscribe: (changed: () => void) => watch(get, changed, { deep: true }) };
  watch(
    () => toValue(descriptor),
    (now, _before, whenOver) => whenOver(shareStore(store, now)),
    { immediate: true },
  );
};
