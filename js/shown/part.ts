/**
 * A part of a page as one resource, by a rule of the user: where it is, and its text, rows or
 * values.
 */
import type { Field } from "../share/secrets.ts";
import { type Anchor, find } from "./anchor.ts";
import { all, asElement, attribute, childrenOf, isVisible, rootOf, tagOf } from "./dom.ts";
import { fieldText, isButton, isField, isKept, isLabelled, isTick } from "./pieces.ts";
import type { Look, Reader, Sight } from "./read.ts";
import { nameOf, roleOf } from "./roles.ts";
import { isSeen } from "./sight.ts";

export interface Part {
  /** The pages that have the part. Who makes views obeys it. */
  path?: string;
  find: Anchor[];
  /** The lines of the part, the rows of a table or the values of a form. Default its lines. */
  as?: "text" | "table" | "form";
  /** Selectors of what is left out. */
  except?: string[];
}

export function elementOf(document: Document, part: Part): Element | undefined {
  const root = rootOf(document);
  return root ? find(root, part.find) : undefined;
}

/** The look at a part that is not in the page. No other text has this character. */
export const gone: Look = { text: "\0", loud: "", note: "" };

/** A look at a part's lines, as its rule has them. */
export function lookOf({ as }: Part, element: Element, look: Look, reader: Reader, sight: Sight): Look {
  if (as !== "table" && as !== "form") return look;
  const { text } = look;
  const value = as === "table" ? rowsOf(element, text, reader, sight) : text ? valuesOf(element, reader) : {};
  return { text: JSON.stringify(value), loud: "", note: "" };
}

/** Characters of a part's rows, of a text that is in all columns that it spans, and of a cell for the layout. */
const most = { rows: 200_000, spread: 200, cell: 500 };
type Row = { group: Element; cells: string[]; isHead: boolean };
/** By column: the text of a cell above, and in how many more rows it is. */
type Above = { text: string; rows: number }[];

/**
 * The rows of a table by the names in its header, or as lists if it has none: those after the first
 * `from` characters. A cell that spans several columns or rows is in each. Of anything else, its
 * lines.
 */
function rowsOf(part: Element, text: string, reader: Reader, { from = 0, links }: Sight): unknown[] {
  const lines = text.split("\n").filter(Boolean);
  const found: unknown[] = [];
  let before: Row | undefined;
  let names: string[] | undefined;
  let [used, isTable] = [0, false];
  const goesOn = () => `(the page goes on: read from ${used})`;
  for (const row of gridOf(part, part, [], reader, !!links)) {
    const { group, cells, isHead } = row;
    isTable ||= cells.length > 1;
    const isNamed = isHead && (before?.isHead || before?.group !== group);
    before = { ...row, isHead: isNamed };
    // A column without a name of its own has its number.
    if (isNamed) names = cells.map((cell, x) => (cell && cells.indexOf(cell) === x ? cell : `${cell} ${x + 1}`.trim()));
    if (isNamed || !cells.some(Boolean)) continue;
    if (used - from > most.rows) return [...found, goesOn()];
    const one = names ? Object.fromEntries(cells.map((cell, x) => [names![x] ?? `${x + 1}`, cell])) : cells;
    if (used >= from) found.push(one);
    used += JSON.stringify(one).length;
  }
  if (!isTable) return lines;
  return lines.at(-1)?.startsWith("(the page goes on") ? [...found, goesOn()] : found;
}

/** The rows in an element. One cell, or a long one, with rows in it is for the layout. */
function* gridOf(element: Element, group: Element, above: Above, reader: Reader, links: boolean): Generator<Row> {
  if (!reader.shows(element)) return;
  const children = childrenOf(element).map(asElement);
  const cells: string[] = [];
  let isHead = true;
  const shown: { cell: Element; text: string }[] = [];
  if (roleOf(element, tagOf(element)) === "row")
    for (const cell of children) {
      const isCell = cell && (reader.shows(cell) || roleOf(cell, tagOf(cell)) === "cell");
      const text = isCell ? reader.lineOf(cell, links) : undefined;
      if (text !== undefined) shown.push({ cell: cell!, text });
    }
  const isLayout = shown.length < 2 || shown.some(({ text }) => text.length > most.cell);
  if (!shown.length || (isLayout && all(element, "tr,[role=row]").length)) {
    const below: Above = [];
    for (const child of children) if (child) yield* gridOf(child, element, below, reader, links);
    return;
  }
  for (const { cell, text } of shown) {
    while (above[cells.length]?.rows) cells.push(above[cells.length]!.text);
    const { colSpan = 1, rowSpan = 1 } = cell as HTMLTableCellElement;
    for (let i = 0; i < colSpan; i++) {
      const one = i && text.length > most.spread ? "" : text;
      // It is counted down below; 0 is to the end.
      above[cells.length] = { text: one, rows: rowSpan || Infinity };
      cells.push(one);
    }
    isHead &&= tagOf(cell) === "th" || attribute(cell, "role") === "columnheader";
  }
  for (const [x, one] of above.entries()) {
    if (!one.rows) continue;
    one.rows--;
    cells[x] = one.text;
  }
  yield { group, cells: Array.from(cells, (cell) => cell ?? ""), isHead };
}

/**
 * The values of the fields that a person sees, by their names: a list where several fields have one
 * name.
 */
function valuesOf(form: Element, reader: Reader): object {
  const values = new Map<string, unknown>();
  const add = (element: Element) => {
    const tag = tagOf(element);
    if (reader.isLeftOut(element)) return;
    if (!isField.test(tag)) {
      for (const child of childrenOf(element)) if (asElement(child)) add(child as Element);
      return;
    }
    const field = element as Field;
    if (field.type === "hidden" || isButton(field) || !isVisible(field)) return;
    if (!isSeen(field) && !(isTick(field) && isLabelled(field))) return;
    const name = nameOf(field, tag) || attribute(field, "name") || tag;
    const value = isTick(field) ? (field as HTMLInputElement).checked : fieldText(field, tag);
    const own = isKept(field) ? "(secret)" : value;
    values.set(name, values.has(name) ? [values.get(name), own].flat() : own);
  };
  add(form);
  return Object.fromEntries(values);
}
