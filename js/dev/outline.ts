/**
 * What agents get of an element that the developer points at: its tags, its text, and a selector.
 * All of it is bounded. What people have typed, and what is private, is not in it.
 */
import { hasDots, isPrivate, privately, withoutSecrets } from "../share/secrets.ts";
import { short } from "./plain.ts";

const told = /^(id|class|type|name|role|href|src|alt|title|for|placeholder|disabled|aria-.*)$/;
const leftOut = /^(script|style|template|noscript)$/;
const typedInto = /^(input|select|textarea|option)$/;

const squash = (text: string): string => text.replace(/\s+/g, " ").trim();
/** `display: contents` has no box of its own. */
const isShown = (of: Element): boolean =>
  getComputedStyle(of).display === "contents" || of.checkVisibility({ visibilityProperty: true });
/** Marks count for shadow trees, too. */
const inPrivate = (of: Element, root = of.getRootNode()): boolean =>
  isPrivate(of) || (root instanceof ShadowRoot && inPrivate(root.host));

/** The tags of an element without their texts, and its visible text. */
export function outlineOf(element: Element): { html: string; text: string } {
  let [html, text, left] = ["", "", 200]; // nodes
  const add = (node: Node): void => {
    if (node instanceof Text) text += node.substringData(0, 300);
    if (left-- < 0 || !(node instanceof Element)) return;
    const { localName: tag, attributes } = node;
    if (leftOut.test(tag) || !isShown(node)) return;
    html += `<${tag}`;
    for (const { name, value } of attributes)
      if (told.test(name)) html += ` ${name}="${short(squash(withoutSecrets(value)), 80)}"`;
    html += ">";
    text += " ";
    const isTyped = typedInto.test(tag) || (node as HTMLElement).isContentEditable;
    if (!isTyped && !node.hasAttribute(privately) && !hasDots(node))
      for (let child = node.firstChild; child && left > 0; child = child.nextSibling) add(child);
    if (node.firstChild) html += `</${tag}>`;
    text += " ";
  };
  if (!inPrivate(element)) add(element);
  return { html: short(html, 300), text: short(squash(text), 200) };
}

/** What a build tool or a count has made, and what a selector would have to escape. */
const isMade = /\d|^$|:|["\\\n]|.{60}/;

/** A short way to find an element alone. `>>>` leads into the shadow tree of what is before it. */
export function selectorOf(element: Element): string {
  const root = element.getRootNode() as Document | ShadowRoot;
  let path = "";
  for (let at: Element | null = element; at; at = at.parentElement) {
    const { localName, parentNode } = at;
    const id = at.getAttribute("id") ?? "";
    const like = Array.from(parentNode!.children).filter((of) => of.localName === localName);
    const place = like.length > 1 ? `:nth-of-type(${like.indexOf(at) + 1})` : "";
    const step = CSS.escape(localName) + (isMade.test(id) ? place : `[id="${id}"]`);
    path = step + (path && ` > ${path}`);
    if (root.querySelectorAll(path).length === 1) break;
  }
  return root instanceof ShadowRoot ? `${selectorOf(root.host)} >>> ${path}` : path;
}
