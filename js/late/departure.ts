/** Tools that lead their tab to another document: when the old one is being left, and what the new one has to say. */
import { listen, SafePromise, unlisten } from "./intrinsics.ts";

/** What is used of the browser's Navigation API; none in Firefox before 147 and Safari before 26.2. */
interface Navigation extends EventTarget {
  readonly transition: object | null;
}
interface NavigateEvent extends Event {
  readonly destination: { readonly sameDocument: boolean };
  readonly downloadRequest: string | null;
}

/** How long after its end a tool may begin a navigation, in ms: a form or a link does so in a later turn. */
const settling = 50;
/** The longest answer of a document, in UTF-16 code units. A longer one is left out: half of it is no JSON. */
const maxAnswer = 16_384;

const { setTimeout } = globalThis;

/** Follows whether the document is left, until the returned function is called, which answers it. */
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
    // No longer than needed: what the tool has said can only be sent before the document goes.
    if (!leaves) await new SafePromise<void>((done) => void setTimeout((found = done), settling));
    unlisten(navigation, "navigate", onnavigate);
    unlisten(navigation, "navigatesuccess", onstay);
    unlisten(navigation, "navigateerror", onstay);
    return leaves && !navigation.transition;
  };
}

/** The document's own answer to a call that has led to it, as content of a result: its first JSON-LD, once it is read. */
export async function answer(): Promise<object[]> {
  if (document.readyState === "loading")
    await new SafePromise<void>((done) => listen(document, "DOMContentLoaded", () => done(), { once: true }));
  const text = document.querySelector('script[type="application/ld+json"]')?.textContent;
  return text && text.length <= maxAnswer ? [{ type: "text", text }] : [];
}
