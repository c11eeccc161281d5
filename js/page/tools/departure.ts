/**
 * For tools that navigate to another document: whether the old document is being left, and the new
 * one's answer.
 */
import { listen, SafePromise, unlisten } from "../common/intrinsics.ts";

/** The used part of the Navigation API, which Firefox lacks before 147 and Safari before 26.2. */
interface Navigation extends EventTarget {
  readonly transition: object | null;
}
interface NavigateEvent extends Event {
  readonly destination: { readonly sameDocument: boolean };
  readonly downloadRequest: string | null;
}

/**
 * The time after its end in which a tool may begin a navigation, in ms: a form or a link does so in
 * a later turn.
 */
const settling = 50;
/**
 * The longest answer of a document, in UTF-16 code units. A longer one is left out: half of it is
 * no JSON.
 */
const maxAnswer = 16_384;

const { setTimeout } = globalThis;

/**
 * Watches for navigations. The returned function ends that, and resolves with whether the document
 * is being left.
 */
export function departure(): () => Promise<boolean> {
  const { navigation } = globalThis as { navigation?: Navigation };
  if (!navigation) return async () => false;
  let leaves = false;
  let found = (): void => {};
  const onnavigate = ({ destination, downloadRequest }: NavigateEvent) => {
    leaves ||= !destination.sameDocument && downloadRequest === null;
    setTimeout(found); // when all listeners have run: one may intercept it
  };
  // An intercepted navigation ends with one of these, in the same document.
  const onstay = () => (leaves = false);
  listen(navigation, "navigate", onnavigate);
  listen(navigation, "navigatesuccess", onstay);
  listen(navigation, "navigateerror", onstay);
  return async () => {
    // Waits no longer than needed: the tool's result can only be sent before the document goes.
    if (!leaves) await new SafePromise<void>((done) => void setTimeout((found = done), settling));
    unlisten(navigation, "navigate", onnavigate);
    unlisten(navigation, "navigatesuccess", onstay);
    unlisten(navigation, "navigateerror", onstay);
    return leaves && !navigation.transition;
  };
}

/**
 * This document's answer to a call that navigated to it, as content of a result: its first JSON-LD,
 * once parsed.
 */
export async function answer(): Promise<object[]> {
  if (document.readyState === "loading")
    await new SafePromise<void>((done) => listen(document, "DOMContentLoaded", () => done(), { once: true }));
  const text = document.querySelector('script[type="application/ld+json"]')?.textContent;
  return text && text.length <= maxAnswer ? [{ type: "text", text }] : [];
}
