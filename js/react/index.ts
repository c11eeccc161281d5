/**
 * dist/npm/react.js: `useResource`, which offers what a component shows to agents for as long as it is mounted.
 *
 * All of it happens in effects. A render touches nothing outside React, so it may be one on a server, be repeated
 * (StrictMode) or be thrown away; and effects come in pairs, so whatever mounts and unmounts a component (StrictMode,
 * hot reload, Activity) leaves one registration or none. It never throws: that agents cannot see a component is no
 * reason for people not to.
 */
import "../page/module.ts"; // the package's own pagewire.mjs
import { useEffect, useRef } from "react";
import type { ResourceDescriptor, useResource as Hook } from "../react.d.ts";

/** Attempts to register that failed because the URI was taken. They are made again whenever a resource is withdrawn. */
const waiting = new Set<() => void>();

/** The page API, if it is there: it is not without a secure context, nor after `pagewire.uninstall()`. */
const api = (): Partial<ModelContext> => document.modelContext ?? navigator.modelContext ?? {};

export const useResource: typeof Hook = (descriptor: ResourceDescriptor, value?: unknown) => {
  const json = !descriptor.read && typeof value !== "string";
  const mimeType = descriptor.mimeType ?? (json ? "application/json" : undefined);
  // What agents are told, as text, so that an equal descriptor is the same. JSON leaves `read` out.
  const told = JSON.stringify({ ...descriptor, mimeType });

  /** What was committed last. */
  const latest = useRef({ descriptor, value });
  /** The URI that this component has registered now, or "". */
  const registered = useRef("");

  // This effect comes first: when both run, the other one has cleaned up already, so that nothing is notified which is
  // about to be registered anew.
  useEffect(() => {
    const changed = !Object.is(latest.current.value, value);
    latest.current = { descriptor, value };
    if (changed && registered.current) api().notifyResourceUpdated?.(registered.current);
  });

  // biome-ignore lint/correctness/useExhaustiveDependencies: told stands for the descriptor, mimeType included
  useEffect(() => {
    const given = latest.current.descriptor;
    // Without any, let registerResource say so.
    const uri = given.uri?.startsWith("/") ? location.origin + given.uri : given.uri;
    const resource: ModelContextResource = {
      ...given,
      uri,
      mimeType,
      read(...args) {
        const { descriptor, value } = latest.current;
        if (descriptor.read) return descriptor.read(...args);
        return typeof value === "string" ? value : (JSON.stringify(value) ?? "null");
      },
    };
    // Not unregisterResource: that would withdraw another's resource, where this component never had the URI.
    const controller = new AbortController();
    const register = () => {
      const context = api();
      if (!context.registerResource)
        throw new Error(
          "the page has no modelContext; it needs a secure context (https, or http on a loopback address)",
        );
      context.registerResource(resource, { signal: controller.signal });
      registered.current = uri;
      waiting.delete(register);
    };
    try {
      register();
    } catch (error) {
      console.error(`pagewire: useResource does not offer '${uri}' to agents:`, error);
      if ((error as Error).name === "InvalidStateError") waiting.add(register);
    }
    return () => {
      waiting.delete(register);
      registered.current = "";
      controller.abort();
      // Later, for it may be withdrawn only to be registered anew by the effects that follow.
      if (waiting.size) queueMicrotask(retry);
    };
  }, [told]);
};

function retry(): void {
  for (const register of waiting) {
    try {
      register();
    } catch {} // still taken, and reported
  }
}
