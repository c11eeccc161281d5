/**
 * The tests mount the hook here. `stage.show({a: [descriptor, value]})` shows one component for each member, with its
 * name as the key. It returns after React has committed the components and run the effects.
 */
import { useEffect, useState } from "react";
import { flushSync } from "react-dom";
import { useResource } from "pagewire/react";

/** Calls of the page API so far; rendering counts the calls while a component rendered. */
const calls = { registerResource: 0, notifyResourceUpdated: 0, rendering: 0 };
let rendering = false;

const { modelContext } = navigator;
for (const name of ["registerResource", "notifyResourceUpdated"]) {
  const original = modelContext[name];
  modelContext[name] = (...args) => {
    calls[name]++;
    if (rendering) calls.rendering++;
    return original.apply(modelContext, args);
  };
}

export function Stage() {
  const [shown, show] = useState({});
  useEffect(() => {
    globalThis.stage = { calls, show: (actors) => flushSync(() => show(actors)) };
  }, []);
  return Object.entries(shown).map(([key, [descriptor, value]]) => (
    <Actor key={key} descriptor={descriptor} value={value} />
  ));
}

function Actor({ descriptor, value }) {
  rendering = true;
  useResource(descriptor, value);
  rendering = false;
  return null;
}
