/**
 * What is made of an element: nothing, a text within a line, or a block. One line is one thing that
 * a person sees: a heading, a paragraph, a row, a field. It has no number and no id, and wrappers
 * do not indent: a change touches few lines.
 */
import { asRead, line, mark, plain, withoutOurs } from "./text.ts";

export interface Block {
  /** Lines, and blocks of lines. */
  parts: (string | Block)[];
  /** The beginning of its first line, and of its other lines. */
  first?: string;
  next?: string;
  /** It is the term of a pair. */
  isTerm?: boolean;
  /** Its first line begins a landmark. */
  isLandmark?: boolean;
  /** It is a row of a table; or its lines are made of a block with rows. */
  row?: Row;
  from?: Block;
}
export type Piece = string | Block | undefined;
/** A row, and its cells with their pieces. `isLong`: its parts are those of its cells. */
export type Row = { element: Element; cells: { cell: Element; piece: Piece }[]; isLong: boolean };

/** In how many columns a cell is, and in how many rows: 0 for all that are left. */
export function spanOf(cell: Element): { x: number; y: number } {
  const { colSpan = 1, rowSpan = 1 } = cell as Partial<HTMLTableCellElement>;
  return { x: colSpan, y: rowSpan };
}

/** The longest row of parts that is one line. */
const longest = 240;

export const block = (parts: (string | Block)[]): Piece => (parts.length ? { parts } : undefined);
export const isBlock = (piece: Piece): piece is Block => typeof piece === "object";
export const hasRow = ({ row, from, parts }: Block): boolean => !!row || !!from || parts.filter(isBlock).some(hasRow);
/** Lines that are made of a piece, whose rows stay. */
export const madeOf = (piece: Piece, parts: string[]): Piece =>
  parts.length && isBlock(piece) && hasRow(piece) ? { parts, from: piece } : block(parts);

/** A piece that stands alone. In raw text each space counts. */
export function alone(piece: Piece, raw = false): Block | undefined {
  if (isBlock(piece)) return piece;
  const lines = piece?.split("\n").map((text) => (raw ? withoutOurs(text) : line(text)));
  return lines && (block(raw ? lines : lines.filter(Boolean)) as Block | undefined);
}

/** Writes a block's lines into a list, which gets no more than `most`. */
export function write(block: Block, out: string[], most = Infinity, first = "", next = ""): void {
  let begin = first + (block.first ?? "");
  const rest = next + (block.next ?? "");
  for (const part of block.parts) {
    if (out.length >= most) return;
    const before = out.length;
    if (isBlock(part)) write(part, out, most, begin, rest);
    else {
      // The next begins, so the last has ended.
      if (out.at(-1) === "---" && block.isLandmark && part === block.parts[0]) out.pop();
      out.push(begin + part);
    }
    if (out.length > before) begin = rest;
  }
}

export function linesOf(piece: Piece, most: number): string[] {
  const out: string[] = [];
  const whole = alone(piece);
  if (whole) write(whole, out, most);
  return out;
}

/** All of a piece in one line. */
export function oneLine(piece: Piece): string {
  const lines = isBlock(piece) ? linesOf(piece, Infinity).filter((text) => text !== "---") : [piece ?? ""];
  return withoutOurs(lines.join(" ")).replace(/\s+/g, " ").trim();
}

/**
 * The only line of a piece, "" without one; undefined if it has several, or one that has to stand
 * alone.
 */
function soleLine(piece: Piece): string | undefined {
  if (!isBlock(piece)) return piece?.trim().includes("\n") ? undefined : (piece ?? "").trim();
  const [only, more] = linesOf(piece, 2);
  if (only === undefined) return "";
  return more !== undefined || /^(#|- |\||---|```)/.test(only) ? undefined : mark.ours + only;
}

/** Lines with nothing but buttons. */
export const buttons = /^\[[^\][]*\]( \[[^\][]*\])*$/;

/**
 * Joins the pieces of an element's children as the layout does: in a line, in a row, or below each
 * other.
 */
export function join(pieces: Piece[], isRow: boolean, raw: boolean): Piece {
  if (isRow) {
    const cells = pieces.map(soleLine);
    const row = cells.filter(Boolean).join(" · ");
    if (!cells.includes(undefined) && plain(row).length <= longest) return row || undefined;
  }
  const parts: (string | Block)[] = [];
  let [text, last] = ["", ""]; // all of a line, and the last of its texts
  const flush = () => {
    for (const one of alone(text, raw)?.parts ?? []) if (one) parts.push(one);
    text = last = "";
  };
  for (const piece of pieces) {
    if (isBlock(piece)) {
      flush();
      const isPlain = piece.parts.length === 1 && !piece.first && !piece.isTerm && !piece.row && !piece.from;
      const only = isPlain ? piece.parts[0]! : piece;
      const before = parts.at(-1);
      const more = isBlock(before) || isBlock(only) ? "" : `${before} ${only}`;
      if (more.length < longest / 2 && buttons.test(more)) parts[parts.length - 1] = more;
      else parts.push(only);
    } else if (piece) {
      text += (/[\])}\u0004]$/.test(last) && /^[\u0003\u0005]/.test(piece) ? " " : "") + piece;
      last = piece;
    }
  }
  if (!parts.length) return text || undefined;
  flush();
  return block(parts);
}

/** A piece with a change of all its texts. */
export function map(piece: Piece, change: (text: string) => string): Piece {
  if (!isBlock(piece)) return piece && change(piece);
  return { ...piece, parts: piece.parts.map((part) => map(part, change) as string | Block) };
}

/** The pairs of a list of terms, each in a line of its own if it is short. */
export function pairs(piece: Piece): Piece {
  if (!isBlock(piece)) return piece;
  const parts: (string | Block)[] = [];
  for (const part of piece.parts) {
    const term = parts.at(-1);
    const name = isBlock(term) && term.isTerm && soleLine(term);
    const text = soleLine(isBlock(part) ? part : { parts: [part] });
    const isTerm = (one: string | Block) => isBlock(one) && one.isTerm;
    const isGroup = isBlock(part) && part.parts.some(isTerm);
    const pair = withoutOurs(`${name}: ${text}`);
    if (name && text && !isTerm(part))
      parts[parts.length - 1] = /^(title|url): /i.test(asRead(plain(pair)).text) ? `\\${pair}` : pair;
    else parts.push(isGroup ? (pairs(part) as Block) : part);
  }
  return block(parts);
}
