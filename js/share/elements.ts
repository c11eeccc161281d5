/**
 * dist/pagewire.elements.js: resources without a script of one's own. Each element with `data-resource` is offered to
 * agents for as long as it is in the document; its URI is the attribute's value, which may be a path.
 *
 * An observer of the document sees elements that come and go. It looks at what was added, and never at the document:
 * what it costs is in proportion to what the page does. Each element that is offered has an observer of its own for
 * what is in it. Nothing is read, and no text is made, until an agent reads.
 *
 * It does not see values that scripts set without an event, nor what is in shadow trees.
 */
import { all, attribute, contentsOf, fields, is, privately, remember, rememberAll } from "./contents.ts";
import { type Field, isField, isForm, isList, isPrivate, isSecret, isTable } from "./contents.ts";
import { type Offer, offer } from "./offer.ts";

const named = "data-resource";
/** What says how an element is offered. */
const described = [named, `${named}-name`, `${named}-description`, `${named}-type`];
/** Attributes that change what is seen of an element; and what a field's value is. */
const looks = ["hidden", "open", "class", "style", privately];
const values = ["value", "checked", "selected", "multiple", "disabled", "name", "type", "autocomplete", privately];

/** The elements that are in the document; what is wrong with one is said, and it is not offered. */
const shown = new Map<Element, { offered: Offer | undefined; observer: MutationObserver }>();

const isElement = (node: Node): node is Element => node.nodeType === Node.ELEMENT_NODE;

function appear(element: Element): void {
  if (shown.has(element) || !document.contains(element)) return;
  rememberAll(element);
  const observer = new MutationObserver((records) => {
    // All of them, since each may have to be remembered.
    if (records.filter((record) => matters(element, record)).length) shown.get(element)?.offered?.changed();
  });
  const valued = isForm(element) || isField(element);
  observer.observe(element, {
    subtree: true,
    childList: true,
    characterData: !isForm(element),
    attributeFilter: valued ? values : looks,
    attributeOldValue: true,
  });
  shown.set(element, { offered: offerOf(element), observer });
}

function vanish(element: Element): void {
  const { offered, observer } = shown.get(element)!;
  shown.delete(element);
  observer.disconnect();
  offered?.end();
}

function offerOf(element: Element): Offer | undefined {
  const of = (name: string) => attribute(element, name) || undefined;
  const uri = of(named) ?? "";
  const refuse = (why: string) =>
    console.error(`pagewire: ${named} does not offer '${uri}' to agents: ${why}`, element);
  if (isPrivate(element)) return void refuse(`it is within ${privately}`);
  if (isField(element) && isSecret(element)) return void refuse("it is a field that no agent may read");
  if (uri.includes("{")) return void refuse("a template needs registerResource, with a read that knows its variables");
  const json = isForm(element) || isTable(element) || isList(element);
  const caption = isTable(element) ? element.caption?.textContent?.trim() : undefined;
  return offer(
    named,
    {
      uri,
      name: of(`${named}-name`) ?? of("aria-label") ?? (caption || of("id")) ?? uri,
      description: of(`${named}-description`),
      mimeType: of(`${named}-type`) ?? (json ? "application/json" : "text/plain"),
      read: () => contentsOf(element),
    },
    element,
  );
}

/** Whether something that has changed in an element is part of what agents read of it. */
function matters(element: Element, record: MutationRecord): boolean {
  const { attributeName, oldValue } = record;
  const target = record.target as Element;
  if (attributeName === "type" && oldValue?.toLowerCase() === "password") remember(target as Field);
  if (isForm(element)) return mattersToForm(record);
  if (attributeName !== "style") return true;
  // Styles change with each frame of an animation; what matters is whether it is shown.
  const shows = (style: string | null) => `${style?.match(/(display|visibility) *:[^;]*/g)}`;
  return shows(oldValue) !== shows(attribute(target, "style"));
}

function mattersToForm({ attributeName, target, addedNodes, removedNodes }: MutationRecord): boolean {
  if (isField(target) && attributeName) return !isSecret(target);
  if (attributeName) return attributeName === privately || is(target as Element, "option,optgroup,fieldset");
  const nodes = [...addedNodes, ...removedNodes].filter(isElement);
  const moved = nodes.flatMap((node) => [node, ...all(node, fields)]).filter((node) => is(node, fields));
  moved.forEach(rememberAll);
  return moved.length > 0;
}

/** What has happened in the document. What has gone goes first: what is there instead may have its URI. */
function see(records: MutationRecord[]): void {
  const marked = records.filter(({ type }) => type === "attributes").map(({ target }) => target);
  for (const element of [...shown.keys()])
    if (!document.contains(element) || marked.some((target) => target.contains(element))) vanish(element);
  for (const { addedNodes } of records) for (const node of addedNodes) find(node);
  marked.forEach(find);
}

function find(root: Node): void {
  const selector = `[${named}]`;
  if (!isElement(root)) return;
  if (is(root, selector)) appear(root);
  if (root.firstElementChild) for (const element of all(root, selector)) appear(element);
}

function hear({ target }: Event): void {
  for (const [element, { offered }] of shown)
    if (element === target || (isForm(element) && element === (target as Field).form))
      if (!isField(target) || !isSecret(target)) offered?.changed();
}

/** So that a second copy of this module does not offer all of it once more. */
const once = Symbol.for("pagewire.elements");

if (typeof document === "object" && !(once in document)) {
  Object.defineProperty(document, once, { value: true });
  const attributeFilter = [...described, privately];
  new MutationObserver(see).observe(document, { subtree: true, childList: true, attributeFilter });
  for (const type of ["input", "change", "reset"]) document.addEventListener(type, hear, true);
  find(document.documentElement);
}
