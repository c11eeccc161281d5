/**
 * References to the intrinsics that the page layer uses, taken when the script runs. So the page
 * layer keeps working in a page that later patches JSON, Promise, Map or a prototype, as old
 * libraries, zone.js and recorders do.
 *
 * It never calls page code. Other intrinsics are not needed: `await` and `async` use the real
 * Promise even if the page has patched it. Array iteration (`for...of`, spread in calls,
 * destructuring) uses the patched iterator, so it is used only on values whose iterator the page
 * may choose.
 */

import { getter, safe, uncurry } from "./basics.ts";

export const {
  apply,
  construct,
  defineProperty,
  deleteProperty,
  getOwnPropertyDescriptor: descriptorOf,
  getPrototypeOf,
  setPrototypeOf,
} = Reflect;
export const { parse, stringify } = JSON;

export const SafeMap = safe(Map);
export const SafeWeakMap = safe(WeakMap);
export const SafeURL = safe(URL);
export const SafeAbortController = safe(AbortController);
/** To make promises with; they are always awaited, never chained. */
export const SafePromise = Promise;

export const slice = uncurry(String.prototype.slice);
/**
 * Chromium has it since 111. Where it is missing, JSON escapes lone surrogates and the core
 * replaces them.
 */
export const toWellFormed = uncurry(("" as { toWellFormed?(): string }).toWellFormed ?? String.prototype.toString) as (
  text: string,
) => string;
/** RegExp.prototype.test would look up `exec`. */
export const exec = uncurry(RegExp.prototype.exec);

/** In a window these must be called without a foreign `this`; as plain variables they are. */
export const microtask = queueMicrotask;
export const warn = console.warn;
export const error = console.error;

export const listen = uncurry(EventTarget.prototype.addEventListener) as (
  target: EventTarget,
  type: string,
  listener: (event: never) => void,
  once?: AddEventListenerOptions,
) => void;
export const unlisten = uncurry(EventTarget.prototype.removeEventListener) as (
  target: EventTarget,
  type: string,
  listener: (event: never) => void,
) => void;
export const dispatch = uncurry(EventTarget.prototype.dispatchEvent);
export const Custom = CustomEvent;

export const aborted = getter(AbortSignal.prototype, "aborted");
export const messageData = getter(MessageEvent.prototype, "data");
export const messageOrigin = getter(MessageEvent.prototype, "origin");
export const messagePorts = getter(MessageEvent.prototype, "ports");
export const messageSource = getter(MessageEvent.prototype, "source");
export const postToWindow = globalThis.postMessage as (message: unknown, origin: string) => void;
export const postToPort = uncurry(MessagePort.prototype.postMessage) as (port: MessagePort, message: unknown) => void;
export const startPort = uncurry(MessagePort.prototype.start);
export const closePort = uncurry(MessagePort.prototype.close);

const Exception = DOMException;
const Quota = (globalThis as { QuotaExceededError?: new (message: string) => Error }).QuotaExceededError;
/** A DOMException by name; QuotaExceededError became a class of its own in newer engines. */
export const exception = (name: string, message: string): Error =>
  name === "QuotaExceededError" && Quota ? new Quota(message) : new Exception(message, name);

/**
 * Intrinsics for the late part, since the page may have patched its own by then: only those that
 * libraries are known to patch. The late part takes the others (typed arrays, Blob) itself.
 * common/intrinsics.ts has the same order: names would cost every page 70 bytes.
 */
export const kept = [
  aborted,
  apply,
  closePort,
  defineProperty,
  error,
  exec,
  listen,
  messageData,
  microtask,
  parse,
  postToPort,
  postToWindow,
  SafeAbortController,
  SafeMap,
  SafePromise,
  slice,
  startPort,
  stringify,
  unlisten,
  warn,
] as const;
