/**
 * The common part of `useResource`, `shareStore` and pagewire.elements.js: a resource that is
 * offered until `end`, at a URI that may be a path.
 *
 * Importing this installs the page API, on a page; on a server that renders it does nothing. It
 * never throws, since the page must work for people even if agents see nothing.
 */
import "../page/early/module.ts"; // the package's own pagewire.mjs
import { modelContext } from "../page/early/basics.ts";

export interface Offer {
  /** Announces that the contents have changed. */
  changed(): void;
  /** Withdraws the resource. */
  end(): void;
}

const key = Symbol.for("pagewire.waiting");
/**
 * Registrations that failed because the URI was taken. They are tried again whenever an offer ends,
 * of whichever module: pagewire/react, pagewire/store and the elements have a copy of this each.
 */
const waiting = ((globalThis as { [key]?: Set<() => void> })[key] ??= new Set());

/**
 * A member of a resource: the store and the state that it shares, for the Vite plugin, whose client
 * shares them too.
 */
export const shared = Symbol.for("pagewire.shared");
type Shared = ModelContextResource & { [shared]?: unknown[] };

/** The page API; empty without a secure context, and after `pagewire.uninstall()`. */
export const api = (): Partial<ModelContext> => modelContext() ?? {};

/**
 * Registers a resource. A refusal of registerResource is an error on the console, which names `by`,
 * the caller, and shows `what`. A URI that is taken is registered once it is free.
 */
export function offer(by: string, resource: Shared, ...what: unknown[]): Offer {
  // registerResource makes a text of a URL object, and reports what is no URI.
  const uri = resource.uri?.[0] === "/" ? location.origin + resource.uri : resource.uri;
  // Not unregisterResource: if this URI was taken, that would withdraw the other resource.
  const end = new AbortController();
  let registered = false;
  const attempt = () => {
    const context = api();
    if (!context.registerResource)
      throw new Error("the page has no modelContext; it needs a secure context (https, or http on a loopback address)");
    context.registerResource({ ...resource, uri }, { signal: end.signal });
    registered = true;
    waiting.delete(attempt);
  };
  try {
    attempt();
  } catch (error) {
    console.error(`pagewire: ${by} does not offer '${String(uri)}' to agents:`, error, ...what);
    if ((error as Error).name === "InvalidStateError") waiting.add(attempt);
  }
  return {
    changed() {
      if (registered) api().notifyResourceUpdated?.(uri);
    },
    end() {
      registered = false;
      waiting.delete(attempt);
      end.abort();
      // Later, since the caller may offer the URI again in this turn.
      queueMicrotask(retry);
    },
  };
}

function retry(): void {
  for (const attempt of waiting) {
    try {
      attempt();
    } catch {} // still taken, and reported
  }
}

/** The text of a value for agents: a string as it is, any other value as JSON. */
export const textOf = (value: unknown): string =>
  typeof value === "string" ? value : (JSON.stringify(value) ?? "null");
