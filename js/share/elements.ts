/**
 * dist/pagewire.elements.js: resources without a script of the page's own. Each element with
 * `data-resource` is offered to agents while it is in the document. Its URI is the attribute's
 * value, which may be a path. Likewise each form with
 * `toolname` is a tool (formtools.ts).
 *
 * An observer of the document sees elements that come and go. It looks at the added nodes, never at
 * the whole document: the cost is in proportion to the changes. Each offered element has an
 * observer of its own for its contents. No text is made until an agent reads.
 *
 * It does not see values that scripts set without an event, nor elements in shadow trees.
 */
import { all, contentsOf, fields, holds, is, rememberAll, textOf } from "./contents.ts";
import { isField, isForm, isList, isTable } from "./contents.ts";
import { attribute, type Field, isPrivate, isSecret, privately, remember } from "./secrets.ts";
import { followForms, makesTools, renew, renewAll, toolAttributes } from "./formtools.ts";
import { type Offer, offer } from "./offer.ts";

const named = "data-resource";
/** The attributes that describe an offer. */
const described = [named, `${named}-name`, `${named}-description`, `${named}-type`];
/** Attributes that change how an element looks; and attributes that change a field's value. */
const looks = ["hidden", "open", "class", "style", privately];
const values = ["value", "checked", "selected", "multiple", "disabled", "name", "type", "autocomplete", privately];

/**
 * The elements with `data-resource` in the document. An element with an error is reported, and has
 * no offer.
 */
const shown = new Map<Element, { offered: Offer | undefined; observer: MutationObserver }>();

const isElement = (node: Node): node is Element => node.nodeType === Node.ELEMENT_NODE;

function appear(element: Element): void {
  if (shown.has(element) || !holds(document, element)) return;
  // Why are elements found among the nodes that were added? In a page of 10,000 nodes, 1,000 nodes
  // added in separate microtasks take 3.0 ms; an observer that searches the document took 49 ms and
  // more. A custom element costs nothing until it is used, but it cannot be a form, a table or a
  // row.
  const observer = new MutationObserver((records) => {
    // `filter`, not `some`: each record may have a password to remember.
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
  const caption = isTable(element) ? element.caption && textOf(element.caption) : undefined;
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

/** Whether a change in an element changes the contents that agents read. */
function matters(element: Element, record: MutationRecord): boolean {
  const { attributeName, oldValue } = record;
  const target = record.target as Element;
  if (attributeName === "type" && oldValue?.toLowerCase() === "password") remember(target as Field);
  if (isForm(element)) return mattersToForm(record);
  if (attributeName !== "style") return true;
  // Styles change with each frame of an animation; only whether the element is shown matters.
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

/**
 * Handles changes of the document. Removed elements go first, since their successors may have the
 * same URI.
 */
function onmutation(records: MutationRecord[]): void {
  const marked = records.filter(({ type }) => type === "attributes").map(({ target }) => target);
  for (const element of [...shown.keys()])
    if (!holds(document, element) || marked.some((target) => holds(target, element))) vanish(element);
  for (const { addedNodes } of records) for (const node of addedNodes) find(node);
  marked.forEach(find);
  renewAll(marked);
}

function find(root: Node): void {
  const selector = `[${named}],form[toolname],[type=password]`; // a password may be in a form by form="…"
  if (!isElement(root)) return;
  if (is(root, selector)) meet(root);
  if (root.firstElementChild) for (const element of all(root, selector)) meet(element);
}

function meet(element: Element): void {
  rememberAll(element);
  if (is(element, `[${named}]`)) appear(element);
  if (makesTools && isForm(element)) renew(element);
}

function oninput({ target }: Event): void {
  for (const [element, { offered }] of shown)
    if (element === target || (isForm(element) && element === (target as Field).form))
      if (!isField(target) || !isSecret(target)) offered?.changed();
}

/** Marks the document, so that a second copy of this module does nothing. */
const once = Symbol.for("pagewire.elements");

if (typeof document === "object" && !(once in document)) {
  Object.defineProperty(document, once, { value: true });
  const attributeFilter = [...described, privately, ...toolAttributes];
  if (makesTools) followForms();
  new MutationObserver(onmutation).observe(document, { subtree: true, childList: true, attributeFilter });
  for (const type of ["input", "change", "reset"]) addEventListener(type, oninput, true);
  find(Reflect.get(Document.prototype, "documentElement", document));
}
