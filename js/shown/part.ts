/**
 * A part of a page as one resource, by a rule of the user: where it is, and its text, rows or
 * values.
 */
import { rowByNames } from "../share/columns.ts";
import type { Field } from "../share/secrets.ts";
import { type Anchor, find } from "./anchor.ts";
import {
  asElement,
  attribute,
  childrenOf,
  closest,
  elementsIn,
  isVisible,
  parentElement,
  rootOf,
  tagOf,
} from "./dom.ts";
import { type Block, hasRow, isBlock, oneLine, type Row, spanOf } from "./lines.ts";
import { fieldText, isButton, isField, isKept, isLabelled, isTick } from "./pieces.ts";
import type { Look, Reader, Sight } from "./read.ts";
import { isHeadCell, nameOf } from "./roles.ts";
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
  const value = as === "table" ? rowsOf(text, reader, sight) : text ? valuesOf(element, reader) : {};
  return { text: JSON.stringify(value), loud: "", note: "" };
}

/** Characters of rows, columns of one, and characters of a text that is in all columns that it spans. */
const most = { rows: 200_000, columns: 1000, spread: 200 };
/** What is known of a table: its names, and whether its header may go on; and of its groups. */
type Table = { names?: string[]; isOpen: boolean; groups: Map<Element, Group> };
/** By column the text of a cell, and the first row that it is not in; and the places of rows. */
type Group = { above: { text: string; end: number }[]; places: Map<Element, number> };

/**
 * The rows of tables by the names in their headers, or as lists if they have none: those after the
 * first `from` characters. A cell that spans several columns or rows is in each. Of anything else,
 * its lines.
 */
function rowsOf(text: string, reader: Reader, { from = 0, links = false }: Sight): unknown[] {
  const tables = new Map<Element | null, Table>();
  const found: unknown[] = [];
  let [used, isTable] = [0, false];
  const isData = ({ element }: Row) => !!tables.get(tableOf(element))?.names;
  for (const row of reader.last ? rowsIn(reader.last, isData) : []) {
    const key = tableOf(row.element);
    const table: Table = tables.get(key) ?? { isOpen: true, groups: new Map() };
    tables.set(key, table);
    const cells = columnsOf(row, table, (cell) => reader.asRead(cell, links).text);
    isTable ||= cells.length > 1;
    if (isHeader(row, table)) {
      // A row of fields is for the user to filter, and one text says something of all.
      const isNames = cells.some((cell) => !/^($|[{[])/.test(cell)) && (!table.names || new Set(cells).size > 1);
      if (isNames) table.names = cells;
      continue;
    }
    table.isOpen = false;
    if (!cells.some(Boolean)) continue;
    if (used - from > most.rows) return [...found, `(the page goes on: read from ${used})`];
    const one = table.names ? rowByNames(table.names, cells) : cells;
    if (used >= from) found.push(one);
    used += JSON.stringify(one).length;
  }
  if (!isTable) return text.split("\n").filter(Boolean);
  return reader.isCut ? [...found, "(the page goes on, and is too large)"] : found;
}

const tableOf = (row: Element) => closest(row, "table,[role=table],[role=grid],[role=treegrid]");

/** The rows in a block. One of long cells, with other rows in it, is for the layout, unless its table has names. */
function* rowsIn(block: Block, isData: (row: Row) => boolean): Generator<Row> {
  const { row, parts, from } = block;
  const within = from ? [from] : parts.filter(isBlock);
  if (row && (!row.isLong || isData(row) || !within.some(hasRow))) yield row;
  else for (const part of within) yield* rowsIn(part, isData);
}

/**
 * The places of rows in their group, of those that nobody sees, too. Chromium would count all rows
 * before each: 13 s for 40,000.
 */
function placesIn(group: Element): Map<Element, number> {
  const rows = Array.from(elementsIn(group)).filter((one) => tagOf(one) === "tr");
  return new Map(rows.map((row, y) => [row, y]));
}

/** The texts of a row by column, also of cells that begin in rows above. */
function columnsOf({ element, cells }: Row, { groups }: Table, read: (text: string) => string): string[] {
  const parent = parentElement(element) ?? element;
  const { above, places } = groups.get(parent) ?? { above: [], places: placesIn(parent) };
  groups.set(parent, { above, places });
  const y = places.get(element) ?? NaN; // a row of other elements has no cells that span
  const texts: string[] = [];
  const fill = () => {
    for (let x = texts.length; above[x] && above[x]!.end > y; x++) texts.push(above[x]!.text);
  };
  for (const { cell, piece } of cells) {
    fill();
    const text = read(oneLine(piece));
    const span = spanOf(cell);
    for (let i = 0; i < span.x && (!i || texts.length < most.columns); i++) {
      const own = i && text.length > most.spread ? "" : text;
      above[texts.length] = { text: own, end: span.y ? y + span.y : Infinity };
      texts.push(own);
    }
  }
  for (let x = texts.length; x < above.length; x++) if (above[x]!.end > y) texts[x] = above[x]!.text;
  return Array.from(texts, (own) => own ?? "");
}

/**
 * Whether a row has the names of the columns: it is in the head; or it is the first one, and has only
 * headers, or follows such a row in which a cell spans others.
 */
function isHeader({ element, cells }: Row, table: Table): boolean {
  const group = tagOf(parentElement(element) ?? element);
  if (group === "thead") {
    table.isOpen = false;
    return true;
  }
  if (!table.isOpen || group === "tfoot" || !cells.every(({ cell }) => isHeadCell(cell))) return false;
  table.isOpen = cells.some(({ cell }) => spanOf(cell).x > 1 || spanOf(cell).y > 1);
  return true;
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
