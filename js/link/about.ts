/**
 * Facts about a document for a core elsewhere, beyond those that its transport knows: LINK.md's
 * `about`.
 */

// The page may patch its own.
const { MutationObserver, setTimeout } = globalThis;
const { get } = Reflect;

/**
 * A member of the document, by the prototype: an element of this name hides the document's own
 * member.
 */
export const ofDocument = (name: string) => get(Document.prototype, name, document);
const title = (): string => ofDocument("title");

/** Least time between two notes about the title, in ms: some pages show a counter in it. */
const titlePause = 500;

/**
 * Follows the document's title. `changed` is called with each title that differs from the last
 * result of `now`.
 */
export function titles(changed: (title: string) => void) {
  let told = "";
  let timer: ReturnType<typeof setTimeout> | undefined;
  const now = (): string => (told = title());
  const observer = new MutationObserver(() => {
    if (timer || title() === told) return;
    timer = setTimeout(() => {
      timer = undefined;
      if (title() !== told) changed(now());
    }, titlePause);
  });
  return {
    now,
    start: (): void =>
      observer.observe(ofDocument("head") ?? document, { childList: true, characterData: true, subtree: true }),
    stop: (): void => observer.disconnect(),
  };
}

/**
 * The path of the document's frame in its tab: "" for the top frame, "0.1" for the second frame in
 * the first.
 */
export function frame(): string {
  let path = "";
  for (let w: Window = window, above = w.parent; above && above !== w; w = above, above = w.parent) {
    let i = 0;
    while (i < above.length && above[i] !== w) i++;
    path = i + (path && "." + path);
  }
  return path;
}
