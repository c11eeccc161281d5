/**
 * Makes the rule of a part at which a person has pointed: ways to find it, the best first, of which
 * each finds it alone. It runs in a page only when a person points, beside the reader or without
 * one, and changes nothing there.
 */
import { hasDots } from "../share/secrets.ts";
import { type Anchor, find, headed, rows, tables } from "./anchor.ts";
import {
  all,
  asElement,
  attribute,
  childrenOf,
  closest,
  elementsIn,
  has,
  isLike,
  parentElement,
  parentOf,
  rootOf,
  styleOf,
  tagOf,
  textContent,
  typeOf,
} from "./dom.ts";
import type { Part } from "./part.ts";
import { brief } from "./roles.ts";
import { squash } from "./text.ts";

/** What a build tool or a count has made, and what a selector would have to escape. */
const isMade = /\d|^:|[:«][rR]\w*[:»]|_[rR]_|["\\\n]|.{60}/;
const isName = (text: string) => /\p{L}{2}/u.test(text) && !/\d|.{80}/.test(text);
const lasting = "id data-testid data-test data-cy name aria-label".split(" ");

/** The name of an element for a selector: a page's may have any character. */
const nameOf = (element: Element) => CSS.escape(tagOf(element));

/** The selectors by which an element is known itself. */
function namesOf(element: Element): string[] {
  return lasting.flatMap((name) => {
    const value = attribute(element, name);
    return value && !isMade.test(value) ? `${nameOf(element)}[${name}="${value}"]` : [];
  });
}

/**
 * An element's place among its siblings, from both ends: where one has come or gone, it finds
 * nothing.
 */
function stepOf(element: Element): string {
  const tag = nameOf(element);
  const parent = parentElement(element);
  const alike = parent ? Array.from(elementsIn(parent)).filter((other) => nameOf(other) === tag) : [];
  const at = alike.indexOf(element);
  if (alike.length < 2) return parent ? `${tag}:only-of-type` : tag;
  return `${tag}:nth-of-type(${at + 1}):nth-last-of-type(${alike.length - at})`;
}

/** The way from an element around this one, or from the root, by places alone. */
export function stepsTo(element: Element, from?: Element): string {
  const parent = element === from ? undefined : parentElement(element);
  return parent && parent !== from ? `${stepsTo(parent, from)} > ${stepOf(element)}` : stepOf(element);
}

/** The cells of a row, or itself if it has text of its own. */
function cellsOf(row: Element): Element[] {
  const hasText = childrenOf(row).some((node) => typeOf(node) === 3 && squash(textContent(node)!));
  return hasText ? [row] : Array.from(elementsIn(row));
}

/**
 * The words by which a row is known: those of the first cell whose like have other words in each
 * row. A state has the same words in many rows, and comes to have them in others.
 */
function wordsOf(row: Element): string | undefined {
  const likes = Array.from(elementsIn(parentElement(row) ?? row)).filter((other) => isLike(other, rows));
  return cellsOf(row)
    .map((cell) => brief(cell, hasDots))
    .find((words, x) => {
      const column = likes.flatMap((like) => brief(cellsOf(like)[x] ?? like) || []);
      return isName(words) && new Set(column).size === column.length;
    });
}

/** Ways to find an element, the best first. Each of them finds it now, alone; none may do so. */
function anchorsOf(root: Element, element: Element): Anchor[] {
  const anchors: Anchor[] = namesOf(element).map((css) => ({ css }));
  const row = closest(element, rows);
  const words = row && wordsOf(row);
  if (row && words) {
    const table = closest(row, tables);
    const header = table && elementsIn(all(table, rows)[0]!)[Array.from(elementsIn(row)).indexOf(element)];
    if (row === element) anchors.push({ row: words });
    else if (header && isLike(header, "th,[role=columnheader]")) anchors.push({ row: words, column: brief(header) });
    else anchors.push({ css: `${nameOf(row)} > ${stepsTo(element, row)}`, row: words });
  } else {
    const css = nameOf(element);
    const under = headed(root, css).get(element) ?? "";
    if (isName(under)) anchors.push({ css, under }, { css: stepOf(element), under });
    for (let e = parentElement(element); e; e = parentElement(e))
      for (const name of namesOf(e)) anchors.push({ css: `${name} > ${stepsTo(element, e)}` });
  }
  const finds = (anchor: Anchor) => find(root, [anchor]) === element;
  const found = anchors.filter(finds).slice(0, 4);
  return found.length ? found : [{ place: stepsTo(element) }].filter(finds);
}

const isField = /^(input|select|textarea)$/;
/**
 * The path of an address, with * for numbers, and for names that have three digits: other runs have
 * the same parts.
 */
const pathOf = (path: string) => path.replace(/[^/]*\d[^/]*/g, (name) => (/\d{3}|^[\d._-]+$/.test(name) ? "*" : name));

/**
 * The blocks around an element at which a person has pointed, the smallest first: no line of a text
 * or of a drawing.
 */
export function* blocksAround(pointed: Element): Generator<Element> {
  for (let node: Node | null = pointed; node; ) {
    const element = asElement(node);
    const tag = element && tagOf(element);
    if (tag && (isField.test(tag) || has(element, "role") || styleOf(element).display !== "inline")) yield element;
    node = parentOf(node) ?? (typeOf(node) === 11 ? (node as ShadowRoot).host : null);
  }
}

/**
 * The rule of the smallest block that can be found. Nothing in a shadow tree can. Undefined where
 * there is none.
 */
export function ruleOf(document: Document, pointed: Element): Part | undefined {
  for (const element of blocksAround(pointed)) {
    const find = anchorsOf(rootOf(document)!, element);
    const as = isLike(element, tables) ? "table" : tagOf(element) === "form" ? "form" : "text";
    if (find.length) return { path: pathOf(location.pathname), find, as };
  }
  return undefined;
}
