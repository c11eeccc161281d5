/** What an element is to a person, and what it is called. */
import { hasDots, isPrivate, labelsOf, privately, withoutSecrets } from "../share/secrets.ts";
import { asElement, attribute, childrenOf, has, isLike, parentElement, tagOf, typeOf, use } from "./dom.ts";
import { cut, squash } from "./text.ts";

const words = (text: string) => text.split(" ");
const table = (text: string) => new Map(words(text).map((pair) => pair.split(":") as [string, string]));
export const skipped = new Set(words("script style template noscript title datalist map object embed rp"));
const ofTags = table(
  "a:link button:button summary:button li:listitem tr:row td:cell th:cell nav:navigation main:main " +
    "aside:complementary dialog:dialog footer:contentinfo search:search img:img svg:img progress:progressbar meter:meter " +
    "h1:heading h2:heading h3:heading h4:heading h5:heading h6:heading",
);
const sameAs = table(
  "columnheader:cell rowheader:cell gridcell:cell treeitem:listitem option:listitem menuitemcheckbox:checkbox " +
    "menuitemradio:radio switch:checkbox graphics-document:img image:img alertdialog:dialog",
);
export const landmarks = new Set(words("navigation main complementary dialog contentinfo search alert"));
export const controls = new Set(words("link button tab menuitem"));

export function roleOf(element: Element, tag: string): string {
  const given = attribute(element, "role").split(" ")[0]!;
  if (given && given !== "presentation" && given !== "none") return sameAs.get(given) ?? given;
  return tag === "a" && !has(element, "href") ? "" : (ofTags.get(tag) ?? "");
}

export const isHeadCell = (cell: Element): boolean =>
  tagOf(cell) === "th" || attribute(cell, "role") === "columnheader";

/** The longest name. A name need not be visible, so it is short. */
const longest = 80;

/**
 * The beginning of the text in an element, seen or not. Values in it are no text, nor is what is
 * private.
 */
export function brief(element: Element, leavesOut = (_: Element) => false): string {
  let text = "";
  let left = 200; // nodes
  const add = (node: Node) => {
    if (left-- < 0 || text.length > 2 * longest) return;
    if (typeOf(node) === 3) text += (node as Text).substringData(0, 4 * longest);
    const inner = asElement(node);
    if (!inner || /^(select|textarea|option)$/.test(tagOf(inner)) || skipped.has(tagOf(inner))) return;
    if (!has(inner, privately) && !leavesOut(inner)) for (const child of childrenOf(inner)) add(child);
  };
  if (!isPrivate(element)) add(element);
  return squash(text);
}
/** The same without what is hidden by dots, which takes more time. */
const spoken = (element: Element): string => brief(element, hasDots);
/** A control without visible text is named by the text for screen readers in it. */
export const unseenName = (element: Element): string => cut(spoken(element), longest);

export function nameOf(element: Element, tag: string): string {
  const labels = /^(input|select|textarea|button|meter|progress)$/.test(tag) && (element as HTMLInputElement).labels;
  const join = (list: Iterable<Element>) =>
    Array.from(list, (e) => spoken(use(e, element)))
      .filter(Boolean)
      .join(" ");
  const name =
    join(labelsOf(element)) ||
    attribute(element, "aria-label") ||
    attribute(element, "alt") ||
    (labels && join(labels)) ||
    attribute(element, "title") ||
    attribute(element, "placeholder");
  return cut(squash(name.slice(0, 1000)).replace(/\s*:$/, ""), longest);
}

export const isTrue = (element: Element, name: string): boolean => attribute(element, name) === "true";
export const isDisabled = (element: Element): boolean =>
  isLike(element, ":disabled") || isTrue(element, "aria-disabled");

/** What a control or an item says of itself. */
export function states(element: Element, tag: string): string {
  const is = (name: string) => isTrue(element, name);
  const parent = parentElement(element);
  return (
    (is("aria-selected") ? " (selected)" : "") +
    (/^(page|step|true|location|date|time)$/.test(attribute(element, "aria-current")) ? " (current)" : "") +
    (is("aria-expanded") || (tag === "summary" && parent && has(parent, "open")) ? " (open)" : "") +
    (is("aria-pressed") ? " (pressed)" : "") +
    (isDisabled(element) ? " (disabled)" : "")
  );
}

/** Where a link leads; "" for a place in this page, or a script. */
export function targetOf(link: Element): string {
  const href = `${(link as HTMLAnchorElement).href}`;
  const leads = attribute(link, "href")[0] !== "#" && /^(https?|mailto|tel):/.test(href);
  return leads ? cut(href, 2000).replaceAll(")", "%29") : ""; // a <base> may make each of megabytes
}

/** An address as agents get it: short, without what only counts its readers. */
export function shortAddress(address: string): string {
  if (!URL.canParse(address)) return cut(address, longest);
  const to = new URL(withoutSecrets(address));
  to.username = to.password = "";
  for (const key of [...to.searchParams.keys()])
    if (/^(utm_\w+|ref|source|fbclid|gclid)$/.test(key)) to.searchParams.delete(key);
  return cut(to.origin === location.origin ? to.pathname + to.search + to.hash : to.href, 100);
}
