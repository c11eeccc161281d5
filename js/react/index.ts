/**
 * dist/npm/react.js: `useResource`, which offers what a component shows to agents for as long as it is mounted.
 *
 * Everything happens in effects. A render touches nothing outside React, so it may run on a server, be repeated
 * (StrictMode) or be thrown away. Effects come in pairs, so mounting and unmounting (StrictMode, hot reload, Activity)
 * leaves one registration or none.
 */
import { useEffect, useRef } from "react";
import type { ResourceDescriptor, useResource as Hook } from "../react.d.ts";
import { type Offer, offer, textOf } from "../share/offer.ts";

export const useResource: typeof Hook = (descriptor: ResourceDescriptor, value?: unknown) => {
  const json = !descriptor.read && typeof value !== "string";
  const mimeType = descriptor.mimeType ?? (json ? "application/json" : undefined);
  // The descriptor as text, so that equal descriptors are one. JSON leaves `read` out.
  const told = JSON.stringify({ ...descriptor, mimeType });

  /** The last commit. */
  const latest = useRef({ descriptor, value });
  const offered = useRef<Offer>(undefined);

  // This effect comes first: when both run, the other one has cleaned up already, so that nothing is notified which is
  // about to be registered anew.
  useEffect(() => {
    const changed = !Object.is(latest.current.value, value);
    latest.current = { descriptor, value };
    if (changed) offered.current?.changed();
  });

  // biome-ignore lint/correctness/useExhaustiveDependencies: told stands for the descriptor, mimeType included
  useEffect(() => {
    const mine = offer("useResource", {
      ...latest.current.descriptor,
      mimeType,
      read(...args) {
        const { descriptor, value } = latest.current;
        return descriptor.read ? descriptor.read(...args) : textOf(value);
      },
    });
    offered.current = mine;
    return () => mine.end();
  }, [told]);
};
