/**
 * Where a part of a page is, also after the page has changed. A rule has several anchors for its
 * part, the best first. A wrong part is worse than none: an anchor counts only while it finds
 * exactly one element that a person may see, and a part that no anchor finds is gone.
 */
import { all, closest, elementsIn, isLike, isVisible, textContent } from "./dom.ts";
import { brief } from "./roles.ts";
import { squash } from "./text.ts";

/** One way to find an element. `under` may come with `css` or `row`, and `column` with `row`. */
export interface Anchor {
  /** A selector, best with an id, a test id, a name or a label. */
  css?: string;
  /**
   * The text of the heading, caption or legend within the element, or else of the last one before
   * it.
   */
  under?: string;
  /**
   * The words by which a row or an item is known: all of its text, or that of an element in it.
   * `css` may be in it.
   */
  row?: string;
  /** The cell of the row that is below this header. */
  column?: string;
  /** A selector by the place alone, which counts only where there is no other kind of anchor. */
  place?: string;
}

const headings = "h1,h2,h3,h4,h5,h6,[role=heading],caption,legend";
export const rows = "tr,li,[role=row],[role=listitem]";
export const tables = "table,[role=table],[role=grid],[role=treegrid]";

/** The elements of a selector, with their headings. */
export function headed(root: Element, css: string): Map<Element, string> {
  const found = new Map<Element, string>();
  const candidates = new Set(all(root, css));
  let last: Element | undefined;
  for (const element of all(root, `${headings},${css}`)) {
    const heading = all(element, headings)[0] ?? last;
    if (isLike(element, headings)) last = element;
    if (candidates.has(element) && heading) found.set(element, brief(heading));
  }
  return found;
}

/** Whether the row, and not only one that it is part of, is known by these words. */
function isKnownBy(row: Element, words: string): boolean {
  if (!squash(textContent(row)!).includes(words)) return false;
  return [row, ...all(row, "*")].some((e) => closest(e, rows) === row && brief(e) === words);
}

/** A cell that spans others hides which is below which header. */
const spans = '[colspan]:not([colspan="1"]),[rowspan]:not([rowspan="1"])';
function cellBelow(row: Element, header: string): Element | undefined {
  const table = closest(row, tables);
  const head = table && all(table, rows)[0];
  if (!head || head === row || all(table, spans).length) return;
  const headers = Array.from(elementsIn(head), (e) => brief(e));
  const at = headers.indexOf(header);
  const cells = elementsIn(row);
  return headers.lastIndexOf(header) === at && cells.length === headers.length ? cells[at] : undefined;
}

function elementsAt(root: Element, { css, under: title, row, column, place }: Anchor): Element[] {
  const selector = place ?? css ?? rows;
  let found = Array.from(all(root, selector));
  if (title !== undefined) found = Array.from(headed(root, selector)).flatMap(([e, text]) => (text === title ? e : []));
  if (row !== undefined)
    found = found.filter((element) => {
      const around = closest(element, rows);
      return around && isKnownBy(around, row);
    });
  return column === undefined ? found : found.flatMap((element) => cellBelow(element, column) ?? []);
}

export function find(root: Element, anchors: Anchor[]): Element | undefined {
  const better = anchors.filter(({ place }) => place === undefined);
  for (const anchor of better.length ? better : anchors) {
    const found = elementsAt(root, anchor).filter((element) => isVisible(element));
    if (found.length === 1) return found[0];
  }
  return undefined;
}
