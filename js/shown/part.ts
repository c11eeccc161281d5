/**
 * A part of a page as one resource, by a rule of the user: where it is, and its text, rows or
 * values.
 */
import type { Field } from "../share/secrets.ts";
import { type Anchor, find } from "./anchor.ts";
import { asElement, attribute, childrenOf, isVisible, rootOf, tagOf } from "./dom.ts";
import { fieldText, isButton, isField, isKept, isLabelled, isTick } from "./pieces.ts";
import type { Look, Reader } from "./read.ts";
import { nameOf } from "./roles.ts";
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
export function lookOf({ as }: Part, element: Element, look: Look, reader: Reader): Look {
  if (as !== "table" && as !== "form") return look;
  const { text } = look;
  const value = as === "table" ? rowsOf(text) : text ? valuesOf(element, reader) : {};
  return { text: JSON.stringify(value), loud: "", note: "" };
}

/**
 * The rows of a table by the names in its header, or as lists if it has none. Of anything else, its
 * lines.
 */
export function rowsOf(text: string): unknown[] {
  const lines = text.split("\n").filter(Boolean);
  if (!lines.some((line) => line.startsWith("| "))) return lines;
  const found: unknown[] = [];
  let cells: string[] = [];
  let names: string[] | undefined;
  for (const line of lines) {
    if (line.startsWith("|-")) {
      // A column without a name of its own has its number.
      names = cells.map((cell, x) => (cell && cells.indexOf(cell) === x ? cell : `${cell} ${x + 1}`.trim()));
      found.pop();
    } else if (line.startsWith("| ")) {
      cells = line
        .slice(2, -2)
        .split(" | ")
        .map((cell) => cell.replaceAll("\\|", "|"));
      found.push(names ? Object.fromEntries(cells.map((cell, x) => [names![x] ?? `${x + 1}`, cell])) : cells);
    } else if (line.startsWith("(the page goes on")) found.push(line);
  }
  return found;
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
