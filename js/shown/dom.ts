/**
 * Members of the DOM, as the prototypes have them: in a page, named elements hide members of their
 * document, and fields those of their form. Texts, shadow roots, labels and slots have no such
 * names. Nodes may be of a frame's document, so nothing here asks for their class.
 */

const call = Function.prototype.call;
function getter<T extends object, K extends keyof T>(prototype: T, name: K): (of: T) => T[K] {
  return call.bind(Object.getOwnPropertyDescriptor(prototype, name)!.get!);
}
type Method<T, A extends unknown[], R> = (this: T, ...args: A) => R;
function method<T, A extends unknown[], R>(of: Method<T, A, R>): (it: T, ...args: A) => R {
  return call.bind(of as never);
}

export const typeOf = getter(Node.prototype, "nodeType");
const firstChild = getter(Node.prototype, "firstChild");
export const nextOf = getter(Node.prototype, "nextSibling");
export const previousOf = getter(Node.prototype, "previousSibling");
export const parentOf = getter(Node.prototype, "parentNode");
export const parentElement = getter(Node.prototype, "parentElement");
const ownerOf = getter(Node.prototype, "ownerDocument");
export const textContent = getter(Node.prototype, "textContent");
export const isConnected = getter(Node.prototype, "isConnected");
const localName = getter(Element.prototype, "localName");
const namespace = getter(Element.prototype, "namespaceURI");
export const previousElement = getter(Element.prototype, "previousElementSibling");
export const elementsIn = getter(Element.prototype, "children");
export const heightOf = getter(Element.prototype, "clientHeight");
export const widthOf = getter(Element.prototype, "clientWidth");
const scrolledOf = { x: getter(Element.prototype, "scrollLeft"), y: getter(Element.prototype, "scrollTop") };
const extentOf = { x: getter(Element.prototype, "scrollWidth"), y: getter(Element.prototype, "scrollHeight") };
const slotOf = getter(Element.prototype, "assignedSlot");
const openRoot = getter(Element.prototype, "shadowRoot");
type Query = (selector: string) => NodeListOf<Element>;
export const all = method(Element.prototype.querySelectorAll as Query);
export const isLike = method(Element.prototype.matches as (selector: string) => boolean);
export const closest = method(Element.prototype.closest as (selector: string) => Element | null);
export const boxOf = method(Element.prototype.getBoundingClientRect);
export const isVisible = method(Element.prototype.checkVisibility);
export const rootOf: (of: Document) => Element | null = getter(Document.prototype, "documentElement");
export const titleOf = getter(Document.prototype, "title");
const windowOf = getter(Document.prototype, "defaultView");
const content = getter(HTMLIFrameElement.prototype, "contentDocument");
/** `true`, and nothing that a field of that name could be. */
export const isEditable = (e: Element): boolean => (e as HTMLElement).isContentEditable === true;
const getAttribute = method(Element.prototype.getAttribute);

export const attribute = (e: Element, name: string): string => getAttribute(e, name) ?? "";
export const has = (e: Element, name: string): boolean => getAttribute(e, name) !== null;
export const styleOf = (element: Element, pseudo?: string): CSSStyleDeclaration => getComputedStyle(element, pseudo);

/**
 * How far a person can scroll back, to the left and up, what an element is in. What is as far before
 * the window is seen then. Some begin at their end: those from right to left, and columns in reverse.
 */
export function backOf(element: Element): { x: number; y: number } {
  const back = { x: 0, y: 0 };
  const up = (e: Element) => slotOf(e) ?? parentElement(e) ?? asElement((parentOf(e) as Partial<ShadowRoot>)?.host);
  let last = styleOf(element).position;
  for (let e = up(element); e && last !== "fixed"; e = up(e)) {
    const { position, overflowX, overflowY, direction, flexDirection } = styleOf(e);
    // What is placed absolutely does not move with what it is not placed in.
    if (last === "absolute" && position === "static") continue;
    last = position;
    const isRoot = tagOf(e) === "html";
    if (isRoot || /auto|scroll/.test(overflowX))
      back.x += (isRoot ? 0 : scrolledOf.x(e)) + (direction === "rtl" ? extentOf.x(e) - widthOf(e) : 0);
    if (!isRoot && /auto|scroll/.test(overflowY))
      back.y += scrolledOf.y(e) + (flexDirection === "column-reverse" ? extentOf.y(e) - heightOf(e) : 0);
  }
  if (last !== "fixed") {
    back.x += viewOf(element).scrollX;
    back.y += viewOf(element).scrollY;
  }
  return back;
}

/** The window of an element, which may be a frame. */
export const viewOf = (element: Element): Window => windowOf(ownerOf(element)!) ?? window;

/** The name of an HTML element, `svg` or `math`; "" for elements within those. */
export function tagOf(element: Element): string {
  const name = localName(element);
  return namespace(element)?.endsWith("/xhtml") || /^(svg|math)$/.test(name) ? name : "";
}

/** Browsers let extensions see closed shadow roots too. */
type Extension = { dom?: { openOrClosedShadowRoot?(of: Element): ShadowRoot | null } };
const openOrClosed = (globalThis as { chrome?: Extension }).chrome?.dom?.openOrClosedShadowRoot;
export const shadowOf = (element: Element): ShadowRoot | null =>
  tagOf(element) && openOrClosed ? openOrClosed(element) : openRoot(element);

export function documentIn(frame: Element): Document | null {
  try {
    const document = content(frame as HTMLIFrameElement);
    // By document.domain a page may enter the documents of other origins.
    return document && windowOf(document)?.origin === origin ? document : null;
  } catch {
    return null; // not an <iframe>, or of another origin
  }
}

/** Node → elements elsewhere whose pieces use it: its slot, its label, and what it names. */
export const usersOf = new WeakMap<Node, Set<Element>>();
export function use<N extends Node>(node: N, user: Element): N {
  const users = usersOf.get(node) ?? new Set();
  usersOf.set(node, users.add(user));
  // Now and then those that are gone go, so that there are at most twice as many as needed.
  if (!(users.size & (users.size - 1))) for (const one of users) if (!isConnected(one)) users.delete(one);
  return node;
}

/**
 * The nodes that are shown as an element's children: of its shadow tree, or assigned to it as to a
 * slot.
 */
export function childrenOf(element: Element, root = shadowOf(element)): Node[] {
  const assigned = !root && tagOf(element) === "slot" ? (element as HTMLSlotElement).assignedNodes() : [];
  for (const node of assigned) use(node, element);
  if (assigned.length) return assigned;
  const nodes: Node[] = [];
  for (let node = firstChild(root ?? element); node; node = nextOf(node)) nodes.push(node);
  return nodes;
}

/** The field of a label. Any other node has none, whatever a page names "control". */
export const controlOf = (node: Node): Element | null =>
  typeOf(node) === 1 && tagOf(node as Element) === "label" ? (node as HTMLLabelElement).control : null;

/** An element, or undefined for any other node. */
export const asElement = (node: Node | null | undefined): Element | undefined =>
  node && typeOf(node) === 1 ? (node as Element) : undefined;
