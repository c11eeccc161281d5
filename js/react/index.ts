/**
 * dist/npm/react.js: `useResource`, which offers a component's value to agents while the component
 * is mounted.
 *
 * Everything happens in effects. A render touches nothing outside React, so it may run on a server,
 * be repeated (StrictMode) or be thrown away. Effects come in pairs, so mounting and unmounting
 * (StrictMode, hot reload, Activity) leaves one registration or none.
 */
import { useEffect, useMemo, useRef } from "react";
import type { ResourceDescriptor, useResource as Hook } from "../react.d.ts";
import { type Offer, offer, shared, textOf } from "../share/offer.ts";
import { fitting, jsonSchemaOf } from "../share/schema.ts";

export const useResource: typeof Hook = ({ read, schema, ...rest }: ResourceDescriptor, value?: unknown) => {
  const json = !read && typeof value !== "string";
  const mimeType = rest.mimeType ?? (json ? "application/json" : undefined);
  const jsonSchema = useMemo(() => jsonSchemaOf(schema), [schema]);
  const descriptor = { ...rest, mimeType, contentSchema: rest.contentSchema ?? jsonSchema };
  // As text, so that equal descriptors count as the same, also if each render makes its own schema.
  const told = JSON.stringify(descriptor);

  /** The last commit. */
  const latest = useRef({ descriptor, read, schema, value });
  const offered = useRef<Offer>(undefined);

  // This effect comes first. If both run, the other one has cleaned up already, so no change is
  // announced for a resource that is about to be registered again.
  useEffect(() => {
    const changed = !Object.is(latest.current.value, value);
    latest.current = { descriptor, read, schema, value };
    if (changed) offered.current?.changed();
  });

  // biome-ignore lint/correctness/useExhaustiveDependencies: told stands for the descriptor
  useEffect(() => {
    const mine = offer("useResource", {
      ...latest.current.descriptor,
      [shared]: [latest.current.value],
      read(...args) {
        const { read, schema, value } = latest.current;
        return read ? read(...args) : fitting(textOf(value), value, schema, args[0]);
      },
    });
    offered.current = mine;
    return () => mine.end();
  }, [told]);
};
