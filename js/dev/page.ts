/** What happens in the page: its route, its errors, and the requests that fail. */
import type { AnyStore } from "../store.d.ts";
import { withoutSecrets } from "../share/secrets.ts";
import { short, textOf } from "./plain.ts";
import { type Any, type List, list, shareAt } from "./share.ts";

declare const process: { env: { PAGEWIRE_ROOT?: string } };

/** A text with the app's files named from its root, where a plugin tells that. */
export function fromRoot(text: string): string {
  try {
    return text.replaceAll(`${process.env.PAGEWIRE_ROOT || "\n"}/`, "");
  } catch {
    return text; // no bundler has replaced the variable
  }
}

/** An address as agents get it: a path at the page's own origin, without a query's secrets. */
function shown(address: string | URL): string {
  let url: URL;
  try {
    url = new URL(address, document.baseURI);
  } catch {
    return short(withoutSecrets(`${address}`), 200);
  }
  url.username = url.password = "";
  return short(withoutSecrets(url.origin === location.origin ? url.href.slice(url.origin.length) : url.href), 200);
}

/** Any router changes the current entry of the session history. */
export function shareRoute(): void {
  const { navigation } = globalThis as Any;
  const store = {
    get: () => ({ path: shown(location.href), title: document.title }),
    subscribe(changed: () => void) {
      navigation.addEventListener("currententrychange", changed);
      return () => navigation.removeEventListener("currententrychange", changed);
    },
  };
  if (navigation) shareAt("/dev/route", "route", store as AnyStore, "Where the app's router is.");
}

/** The first line of an error that says what it is, without what terminals are told about colours. */
function lineOf(error: unknown): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what they are told
  const text = textOf(error).replace(/\x1b\[[\d;]*m/g, "");
  const lines = text.split("\n");
  return short(lines.find((line) => line.trim() && !/:\d+:\d+$|:\s*$/.test(line)) ?? lines[0]!, 200);
}

/** Where an error comes from: the first place of its stack that is not in a package. */
function placeIn(stack: unknown): string | undefined {
  const places = textOf(stack)
    .match(/[a-z-]+:\/\/[^\s()]+:\d+:\d+/g)
    ?.filter((place) => !place.includes("node_modules"));
  return places?.[0] && shown(places[0].replace(/\?[^:]*/, ""));
}

/** Errors of the dev server, which it tells by a channel of its own, until they are mended. */
let built: object[] = [];
let errors: List;

/** Replaces the errors of the dev server. */
export function buildErrors(now: Any[]): void {
  built = now.map(({ message, file, id, loc }) => {
    const place = loc?.line ? `${loc.file ?? id}:${loc.line}:${loc.column}` : /[^\s[\]()]+:\d+:\d+/.exec(message)?.[0];
    const at = place ?? file ?? id;
    // Compilers begin with a code of their own, or with the place.
    const text = lineOf(`${message}`.replace(`${place} `, "")).replace(/^\[\w+\] /, "");
    return { build: fromRoot(text), ...(at && { at: short(fromRoot(at), 200) }) };
  });
  errors.changed();
}

/** Errors that nothing in the app has caught. */
export function shareErrors(failed: (request: object) => void): List {
  errors = list(
    "errors",
    "Errors since the code was last changed, newest last; `build`: by the dev server.",
    () => built,
  );
  const add = (error: Any, at = placeIn(error?.stack)) => errors.add({ error: lineOf(error), ...(at && { at }) });
  const onerror = ({ target, error, message, filename, lineno, colno }: ErrorEvent) => {
    if (!(target instanceof Element))
      return add(error ?? message, placeIn(error?.stack ?? `${filename}:${lineno}:${colno}`));
    const { src, href } = target as Any;
    if (src || href)
      failed({ method: "GET", url: shown(`${src || href}`), error: `<${target.localName}> did not load` });
  };
  addEventListener("error", onerror, true);
  addEventListener("unhandledrejection", ({ reason }) => add(reason));
  return errors;
}

/** Requests that fail, by `fetch` and by XMLHttpRequest. Their bodies and headers are nobody's. */
export function shareRequests(): List {
  const requests = list("requests", "Requests that failed since the code was last changed, newest last.");
  const note = (method: string, url: string | URL, status: number, error?: unknown) => {
    if (error !== undefined) requests.add({ method, url: shown(url), error: lineOf(error) });
    else if (status >= 400) requests.add({ method, url: shown(url), status });
  };

  const { fetch } = globalThis;
  globalThis.fetch = async function (this: unknown, ...args) {
    const [input, init] = args;
    const request = input instanceof Request ? input : { url: `${input}`, method: "GET" };
    const method = `${init?.method ?? request.method}`.toUpperCase();
    try {
      const response = await Reflect.apply(fetch, this ?? globalThis, args);
      note(method, request.url, response.status);
      return response;
    } catch (error) {
      if ((error as Error)?.name !== "AbortError") note(method, request.url, 0, error);
      throw error;
    }
  };

  const prototype = XMLHttpRequest.prototype;
  const { open } = prototype;
  /** What a request is for, since it was last opened. */
  const opened = new WeakMap<XMLHttpRequest, [method: string, url: string | URL]>();
  prototype.open = function (this: XMLHttpRequest, ...args: Any[]) {
    Reflect.apply(open, this, args);
    const [method, url] = args;
    const again = opened.has(this);
    opened.set(this, [`${method}`.toUpperCase(), url]);
    if (again) return;
    const on = (type: string, error?: string) =>
      this.addEventListener(type, () => note(...opened.get(this)!, this.status, error));
    on("load");
    for (const type of ["error", "timeout"]) on(type, type);
  } as typeof open;
  return requests;
}
