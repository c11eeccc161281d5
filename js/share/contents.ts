/**
 * The contents of an element: a form's fields, a table's rows, a field's value, or the text of any
 * other element.
 *
 * A person sees the same there, but the contents lack passwords, card numbers, one-time codes,
 * files, hidden fields, and anything in `data-resource-private`. Passwords are remembered: a button
 * that shows a password makes its field a text field, which stays secret.
 *
 * Methods are called on prototypes: in a form, a field's name hides the form's own member of that
 * name.
 */

import { rowByNames } from "./columns.ts";
import { type Field, hasDots, isPrivate, isSecret, privately, remember } from "./secrets.ts";

export const is = (element: Element, selector: string): boolean => Element.prototype.matches.call(element, selector);
export const all = (within: Element, selector: string): Iterable<Element> =>
  Element.prototype.querySelectorAll.call(within, selector);
export const fieldsOf = (form: HTMLFormElement): Iterable<Element> =>
  Object.getOwnPropertyDescriptor(HTMLFormElement.prototype, "elements")!.get!.call(form);

/**
 * Node.contains, by the prototype: named fields hide members of their form, and named elements
 * those of the document.
 */
export const holds = (outer: Node, inner: Node): boolean => Node.prototype.contains.call(outer, inner);
const member = (element: Element, name: string) =>
  Reflect.get((element instanceof HTMLElement ? HTMLElement : Element).prototype, name, element);

/** The elements of a form: its fields and their options. */
export const fields = "input,select,textarea,option";

export const isForm = (element: Element): element is HTMLFormElement => element instanceof HTMLFormElement;
export const isTable = (element: Element): element is HTMLTableElement => element instanceof HTMLTableElement;
export const isField = (element: unknown): element is Field =>
  element instanceof HTMLInputElement || element instanceof HTMLSelectElement || element instanceof HTMLTextAreaElement;
/** A field whose value is a list. */
export const isList = (element: Element): boolean => is(element, "select[multiple], input[type=file]");

/** The contents of an element now. Throws if agents may read nothing of it. */
export function contentsOf(element: Element): string {
  if (isPrivate(element)) throw new Error(`it is within ${privately}`);
  if (isForm(element)) return JSON.stringify(valuesOf(element));
  if (isTable(element)) return JSON.stringify(rowsOf(element));
  if (!isField(element)) return textOf(element as HTMLElement);
  if (isSecret(element)) throw new Error("it is a field that no agent may read");
  if (/^(checkbox|radio)$/.test(element.type)) return `${(element as HTMLInputElement).checked}`;
  if (isList(element)) return JSON.stringify(entriesOf(element));
  return element instanceof HTMLSelectElement ? `${entriesOf(element)[0] ?? ""}` : element.value;
}

/** Remembers a form's passwords, or the field if it is one. */
export function rememberAll(element: Element): void {
  for (const field of isForm(element) ? fieldsOf(element) : [element])
    if (isField(field) && field.type === "password") remember(field);
}

/**
 * A form's values as a submission would have them: a list if a name has several values, or may
 * have.
 */
function valuesOf(form: HTMLFormElement): object {
  const values = new Map<string, unknown>();
  rememberAll(form);
  for (const field of fieldsOf(form)) {
    if (!isField(field) || !field.name || is(field, ":disabled, datalist *") || isSecret(field)) continue;
    for (const entry of entriesOf(field)) {
      const before = values.get(field.name);
      if (before !== undefined) values.set(field.name, [before, entry].flat());
      else values.set(field.name, isList(field) ? [entry] : entry);
    }
  }
  return Object.fromEntries(values);
}

function entriesOf(field: Field): unknown[] {
  if (field instanceof HTMLSelectElement)
    return Array.from(field.selectedOptions)
      .filter((option) => !is(option, ":disabled") && !isPrivate(option))
      .map((option) => option.value);
  switch (field.type) {
    case "submit":
    case "reset":
    case "button":
    case "image":
      return [];
    case "checkbox":
    case "radio":
      return (field as HTMLInputElement).checked ? [field.value] : [];
    case "file":
      return Array.from((field as HTMLInputElement).files ?? [], ({ name, size, type }) => ({ name, size, type }));
    default:
      return [field.value];
  }
}

/**
 * The visible rows of a table's bodies: objects by the names in its header, or lists if it has no
 * header.
 */
function rowsOf(table: HTMLTableElement): unknown[] {
  const rows = Array.from(table.tBodies, (body) => gridOf(body.rows)).flat();
  const head = table.tHead?.rows.length ? gridOf(table.tHead.rows).at(-1) : headIn(rows);
  const heads = head?.cells.map(textOf);
  const columns = head?.cells.map(isShown) ?? [];
  return rows
    .filter(({ row }) => isShown(row) && isShown(row.parentElement!))
    .map(({ cells }) => {
      // A row may have no cell in a column, and more cells than the header.
      const texts = Array.from(cells, (cell, x) =>
        cell && isShown(cell) && (columns[x] ?? true) ? textOf(cell) : undefined,
      );
      return heads ? rowByNames(heads, texts) : texts;
    });
}

interface Row {
  row: HTMLTableRowElement;
  /** By column. A cell that spans several columns is in each. */
  cells: HTMLTableCellElement[];
}

/**
 * The first row of a table without <thead>, if it has only headers: then it is not a row of data.
 */
const headIn = (rows: Row[]): Row | undefined =>
  rows[0]?.cells[0] && rows[0].cells.every((cell) => cell.tagName === "TH") ? rows.shift() : undefined;

function gridOf(rows: HTMLCollectionOf<HTMLTableRowElement>): Row[] {
  const grid: Row[] = Array.from(rows, (row) => ({ row, cells: [] }));
  grid.forEach(({ row, cells }, y) => {
    let x = 0;
    for (const cell of row.cells) {
      while (cells[x]) x++;
      const below = cell.rowSpan ? y + cell.rowSpan : grid.length; // 0: to the end
      for (const each of grid.slice(y, below)) for (let i = 0; i < cell.colSpan; i++) each.cells[x + i] = cell;
    }
  });
  return grid;
}

/** Whether an element within the offered one is shown. (The offered one is read, shown or not.) */
function isShown(element: Element): boolean {
  const { display, visibility } = getComputedStyle(element);
  return display !== "none" && visibility === "visible" && !isPrivate(element);
}

/** Elements whose content is no text of the element around them. */
const apart = `[${privately}],input,select,textarea,script,style,noscript`;

/**
 * Whether the browser has left the layout of an element for later, because it is off the screen and
 * its parent has
 * `content-visibility: auto`. Scrolling shows it, but an innerText around it lacks it.
 */
function isLeftForLater(element: Element): boolean {
  const isVisible = Element.prototype.checkVisibility as Element["checkVisibility"] | undefined;
  return isVisible?.call(element, { contentVisibilityAuto: true }) === false && isVisible.call(element);
}

/**
 * The text that a person sees in an element. The browser's innerText respects styles, lines and
 * white space, but not private elements, and lacks parts without layout. So it is used for each
 * part that has neither.
 */
export function textOf(element: HTMLElement): string {
  if (isPrivate(element) || hasDots(element)) return "";
  if (!member(element, "firstElementChild")) return member(element, "textContent").trim();
  // SVG has no innerText.
  if (!Element.prototype.querySelector.call(element, apart) && !Array.from(all(element, "*")).some(isLeftForLater))
    return (member(element, "innerText") ?? member(element, "textContent")).trim();
  let text = "";
  for (const node of member(element, "childNodes") as NodeList) {
    if (node instanceof Text) text += node.data.replace(/\s+/g, " ");
    if (!(node instanceof Element) || is(node, apart) || !isShown(node)) continue;
    const inline = getComputedStyle(node).display.startsWith("inline");
    text += inline ? textOf(node as HTMLElement) : `\n${textOf(node as HTMLElement)}\n`;
  }
  return text.replace(/ *\n\s*/g, "\n").trim();
}
