/**
 * The page's resources: the bodies of the three methods, for converted arguments.
 *
 * The page layer is the source of truth. A core gets all resources when it starts, and then each
 * change. It checks them again, but only these checks throw in the page. Nothing here waits.
 * Nothing calls the page's code, except that serialising a schema may run its toJSON. So that comes
 * before the registry is looked at.
 */
import { fail } from "./convert.ts";
import {
  aborted,
  exception,
  exec,
  listen,
  microtask,
  parse,
  SafeMap,
  stringify,
  unlisten,
  warn,
} from "./intrinsics.ts";
import { type Entry, shared } from "./shared.ts";
import { canonical, requireOrigin } from "./uri.ts";

export const maxResources = 10_000;
/**
 * In code units of JSON: an icon as a data: URI fits. Ten thousand of these take gigabytes, but the
 * page's own.
 */
export const maxDescription = 262_144;
const maxInterval = 86_400_000;
/**
 * A member below the 60th level, in JSON that is indented by a space a level. Cores parse no more of
 * a descriptor: bridge/descriptor.go.
 */
const tooDeep = /\n {61}/;

/** A converted ModelContextResource. */
interface Resource {
  uri: string;
  mimeType?: string;
  annotations?: { priority?: number };
  contentSchema?: object;
  uriSchema?: object;
  minUpdateInterval?: number;
  read?: Entry["read"];
}

const { entries, stats } = shared;

/** The document's permission. `active` is a function, since a document can become inactive. */
export interface Permission {
  readonly origin: string;
  active(): unknown;
  readonly allowed: boolean;
}

export function register(
  resource: Resource,
  signal: AbortSignal | undefined,
  { origin, active, allowed }: Permission,
  where: string,
): void {
  if (!active()) throw exception("InvalidStateError", where + "The document is not active.");
  if (!allowed)
    throw exception("NotAllowedError", where + 'Access to the feature "tools" is disallowed by permissions policy.');

  const { annotations, read } = resource;
  const priority = annotations?.priority ?? 0;
  if (priority < 0 || priority > 1) fail(`${where}The 'priority' ${priority} is not within 0 to 1.`);
  if ((resource.minUpdateInterval ?? 0) > maxInterval) fail(`${where}The 'minUpdateInterval' is above ${maxInterval}.`);
  const copySchema = (name: "contentSchema" | "uriSchema") => {
    if (!resource[name]) return;
    const text = stringify(resource[name], null, 1);
    if (text?.[0] !== "{" || exec(tooDeep, text))
      fail(`${where}The '${name}' is not a JSON object of at most 60 levels.`);
    resource[name] = parse(text);
  };
  copySchema("contentSchema");
  copySchema("uriSchema");

  const key = (resource.uri = requireOrigin(resource.uri, origin, where));
  delete resource.read;
  const descriptor = stringify(resource);
  const limit = (what: string, max: number) => {
    throw exception("QuotaExceededError", `${where}${what} the limit of ${max}.`);
  };
  if (descriptor.length > maxDescription) limit(`The description of '${key}' exceeds`, maxDescription);
  if (entries.has(key)) throw exception("InvalidStateError", `${where}'${key}' is already registered.`);
  if (entries.size >= maxResources) limit("The number of resources reaches", maxResources);
  if (signal && aborted(signal)) return warn(`pagewire: '${key}' was not registered: its signal is aborted.`);

  const onabort = () => {
    // Only this registration: the page may have withdrawn it and registered the URI again.
    if (entries.get(key) === entry) remove(key, entry);
  };
  const entry: Entry = {
    descriptor,
    mimeType: resource.mimeType,
    read: read!,
    release: () => signal && unlisten(signal, "abort", onabort),
  };
  if (signal) listen(signal, "abort", onabort);
  entries.set(key, entry);
  shared.core?.register(descriptor);
  relisted(key);
}

export function unregister(uri: string, where: string): void {
  const key = keyOf(uri, where);
  const entry = entries.get(key);
  if (!entry) throw exception("NotFoundError", `${where}'${uri}' is not registered.`);
  remove(key, entry);
}

function remove(key: string, entry: Entry): void {
  entries.delete(key);
  entry.release();
  shared.core?.unregister(key);
  relisted(key);
}

/**
 * Announces a changed list. An empty list is announced in a microtask, since a page that replaces
 * its only resource (React does at each mount) has none for a moment.
 */
function relisted(key: string): void {
  shared.changed?.("", key);
  if (entries.size) shared.populated?.(true);
  else microtask(() => entries.size || shared.populated?.(false));
}

export function withdrawAll(): void {
  entries.forEach((entry, key) => remove(key, entry));
}

/**
 * Key that was notified in this turn of the event loop, to whether it was notified more than once.
 */
const told = new SafeMap<string, boolean>();

const touch = (key: string) => {
  shared.changed?.(key);
  shared.core?.touch(key);
};

// Why does the page layer merge the notifications of one turn? 10,000 calls into freshly compiled
// wasm take up to 120 ms, longer than the interval of 100 ms, so a subscriber saw three updates.
// Now the first notification of a URI in a turn goes at once, and the others of the turn follow as
// one: always two. This is no second coalescing, which belongs in the engine alone: it has no
// interval.
export function notify(uri: string, where: string): void {
  const key = keyOf(uri, where);
  stats.notified++;
  // An unknown URI is passed on: it may be an expansion of a template, or carry the parameters of a
  // uriSchema. The core matches those. Without a core there are no watchers.
  if (!entries.has(key)) stats.unknown++;
  // The core merges updates over time. But each touch costs up to 9 us while the wasm is cold, and
  // a loop of 10,000 took 120 ms, longer than the core's interval. So all calls of a turn after the
  // first cause only one more touch, at the turn's end. Agents cannot notice, since reads do not
  // run before that.
  const again = told.has(key);
  told.set(key, again);
  if (again) return;
  touch(key);
  microtask(() => {
    if (told.get(key)) touch(key);
    told.delete(key);
    shared.hint?.(key);
  });
}

/**
 * Most calls pass the canonical spelling; then the URL parser (about 1 us, in the page's mousemove)
 * is not needed.
 */
const keyOf = (uri: string, where: string) => (entries.has(uri) ? uri : canonical(uri, where));
