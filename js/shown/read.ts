/**
 * The reader: what a page shows, as lines. A walk makes a piece of each element, and keeps it until something in the
 * element changes, or something around it that may show or hide it. It can pause at any element.
 */
import { hasDots, privately } from "../share/secrets.ts";
import {
  asElement,
  attribute,
  bodyOf,
  childrenOf,
  dataOf,
  documentIn,
  has,
  heightOf,
  hostOf,
  isConnected,
} from "./dom.ts";
import {
  isEditable,
  lengthOf,
  parentOf,
  shadowOf,
  slotOf,
  styleOf,
  tagOf,
  textContent,
  titleOf,
  typeOf,
} from "./dom.ts";
import { nextOf, previousElement, previousOf, widthOf } from "./dom.ts";
import { alone, block, join, linesOf, map, oneLine, type Piece, pairs, write } from "./lines.ts";
import { apart, codePiece, fieldPiece, frameLine, imagePiece, isRow, item, labelPiece } from "./pieces.ts";
import { landmarkPiece, linkPiece, mediaPiece, rowPiece, tick } from "./pieces.ts";
import { controls, landmarks, nameOf, roleOf, shortAddress, skipped, states, unseenName } from "./roles.ts";
import { type Colour, groundOf, isAway, isLegible, type Place, white } from "./sight.ts";
import { clean, cut, heard, linked, plain, quiet, squash, token } from "./text.ts";

/** Characters of a look, elements that it makes anew, elements and frames in each other, and one step of a long text. */
const most = { text: 200_000, elements: 250_000, depth: 512, frames: 8, step: 50_000 };

/** What is around an element that matters for it. */
interface Around {
  /** The time of the last change around it that may show or hide it. */
  since: number;
  ground: Colour;
  opacity: number;
  /** The box that has the text. */
  place: Place;
  /** It is in a link or button, in code, or in a list of terms. */
  inControl: boolean;
  isRaw: boolean;
  isPairs: boolean;
  frames: number;
  depth: number;
}
const top: Around = {
  since: 0,
  ground: white,
  opacity: 1,
  place: { isThere: true },
  inControl: false,
  isRaw: false,
  isPairs: false,
  frames: 0,
  depth: 0,
};

interface Kept {
  piece: Piece;
  /** When it was begun. It is valid if nothing has changed since. */
  at: number;
  how: How;
  /** Its characters, and those that are hidden. */
  used: number;
  hidden: number;
}

export interface Look {
  text: string;
  /** What of it is news if it changes. */
  loud: string;
}
/** What to look at: the whole page, or a part, null if it is not there; after so many characters; with the addresses of links. */
export interface Sight {
  part?: Element | null | undefined;
  from?: number | undefined;
  links?: boolean | undefined;
}
type Walk<T> = Generator<void, T>;

/** How an element is shown. */
interface How {
  display: string;
  visibility: string;
  opacity: number;
}
const howOf = ({ display, visibility, opacity }: CSSStyleDeclaration): How => ({
  display,
  visibility,
  opacity: +opacity,
});
const isTick = (element: Element, tag: string) =>
  tag === "input" && /^(checkbox|radio|file)$/.test((element as HTMLInputElement).type);
/** What says how long ago or how far something is changes by itself. */
const isSoft = (element: Element, tag: string, role: string) =>
  /^(time|relative-time)$/.test(tag) ||
  /^(timer|marquee|progressbar)$/.test(role) ||
  attribute(element, "aria-live") === "off";
const stateOf = (field: Element) => {
  const { value, checked, selectedOptions } = field as HTMLInputElement & HTMLSelectElement;
  return `${value} ${checked} ${selectedOptions?.length}`;
};

/** A space, if an inline element stands apart from its neighbour, and there is no white space between them. */
function isBeside(neighbour: Node | null, end: "^" | "$", style: CSSStyleDeclaration, side: "Left" | "Right"): string {
  if (!neighbour || (typeOf(neighbour) === 3 && hasSpace[end].test(dataAt(neighbour as Text, end)))) return "";
  return parseFloat(style[`margin${side}`]) + parseFloat(style[`padding${side}`]) >= 3 ? " " : "";
}
const dataAt = (text: Text, end: "^" | "$") => dataOf(text, end === "^" ? 0 : Math.max(0, lengthOf(text) - 1), 1);
const hasSpace = { "^": /^\s|^$/, $: /\s$|^$/ };

export class Reader {
  /** Elements whose text changes all the time by itself. */
  readonly restless = new Set<Element>();
  /** The number of times that such a text has become one that it has not been lately. */
  news = 0;
  /** Increases with each change of the page. */
  clock = 1;
  /** When the walk has to pause. */
  deadline = 0;

  readonly #document: Document;
  readonly #meet: (root: Document | ShadowRoot) => void;
  #kept = new WeakMap<Element, Kept>();
  /** Times of changes within a node; around it, which may hide what is in it; and beside it, which may hide it. */
  readonly #changed = new WeakMap<Node, number>();
  readonly #shaken = new WeakMap<Element, number>();
  readonly #nudged = new WeakMap<Element, number>();
  /** The documents of frames → the frames. */
  readonly #frameOf = new WeakMap<Node, Element>();
  /** Fields → what they had. Scripts set values without an event. */
  readonly #fields = new Map<Element, string>();
  /** Of this walk: characters, those hidden, elements seen and made, characters that are enough, whether some are left. */
  #used = 0;
  #hidden = 0;
  #seen = 0;
  #made = 0;
  #enough = 0;
  #isCut = false;

  constructor(document: Document, meet: (root: Document | ShadowRoot) => void) {
    this.#document = document;
    this.#meet = meet;
  }

  /** Forgets the pieces of a node and of all around it. */
  stale(node: Node | null | undefined): void {
    for (let n = node; n && this.#changed.get(n) !== this.clock; ) {
      this.#changed.set(n, this.clock);
      const slot = slotOf.get(n);
      if (slot) this.stale(slot);
      const type = typeOf(n);
      n = type === 11 ? hostOf(n as ShadowRoot) : type === 9 ? this.#frameOf.get(n) : parentOf(n);
    }
  }
  /** Forgets also the pieces within. */
  shake(element: Element): void {
    this.#shaken.set(element, this.clock);
    this.stale(element);
  }
  /** Has an element looked at again, whether it is still shown as it was. */
  nudge(element: Element): void {
    this.#nudged.set(element, this.clock);
  }
  forget(): void {
    this.#kept = new WeakMap();
    this.#fields.clear();
  }

  /** The look of now. It pauses when the deadline is over. */
  *look({ part, from = 0, links = false }: Sight): Walk<Look> {
    for (const [field, before] of this.#fields) {
      if (!isConnected(field)) this.#fields.delete(field);
      else if (stateOf(field) !== before) this.stale(field);
    }
    this.#made = 0;
    const { origin, pathname, search } = location;
    const title = cut(squash(titleOf(this.#document)).trim(), 200);
    const head = part !== undefined ? [] : [`title: ${title}`, `url: ${origin}${cut(pathname + search, 200)}`];
    // A line may be shorter than what it is made of.
    for (let enough = from + most.text; ; enough *= 2) {
      this.#enough = enough;
      this.#used = this.#hidden = this.#seen = 0;
      this.#isCut = false;
      const root = part === undefined ? bodyOf(this.#document) : part;
      const piece = root && alone(yield* this.#pieceOf(root, part ? this.#around(part) : top));
      const lines = [...head];
      if (piece) write(piece, lines);
      const whole = [...lines, ""].join("\n");
      const { text, loud } = heard(links ? linked(whole, shortAddress) : plain(whole));
      if (this.#isCut && this.#made <= most.elements && text.length - from <= most.text) continue;
      const hidden = this.#hidden ? `(hidden text of ${this.#hidden} characters is left out)\n` : "";
      return { text: this.#page(text, from) + hidden, loud: `${loud}${this.news}` };
    }
  }

  /** At most so much of a text, after so many characters, and what to read next. */
  #page(text: string, from: number): string {
    if (text.length - from <= most.text) {
      return text.slice(from) + (this.#isCut ? "(the page goes on, and is too large to be read further)\n" : "");
    }
    const end = text.lastIndexOf("\n", from + most.text) + 1;
    const to = end > from + most.text / 2 ? end : from + most.text;
    return `${text.slice(from, to)}${to === end ? "" : "\n"}(the page goes on: read from ${to})\n`;
  }

  /** What is around a part, as a walk would have met it. */
  #around(part: Element): Around {
    const parent = parentOf(part);
    const type = parent ? typeOf(parent) : 0;
    const outer =
      type === 11 ? hostOf(parent as ShadowRoot) : type === 9 ? this.#frameOf.get(parent!) : asElement(parent);
    if (!outer) return top;
    const [tag, style] = [tagOf(outer), styleOf(outer)];
    return this.#within(outer, tag, roleOf(outer, tag), style, howOf(style), this.#around(outer));
  }
  #within(e: Element, tag: string, role: string, style: CSSStyleDeclaration, how: How, outer: Around): Around {
    const isPlace = how.display !== "inline" && how.display !== "contents";
    return {
      since: Math.max(outer.since, this.#shaken.get(e) ?? 0),
      ground: groundOf(style, outer.ground),
      opacity: outer.opacity * how.opacity,
      place: isPlace || style.position !== "static" ? { element: e } : outer.place,
      inControl: outer.inControl || role === "link" || controls.has(role),
      isRaw: outer.isRaw || tag === "pre",
      isPairs: tag === "dl" || (outer.isPairs && tag === "div"),
      frames: outer.frames,
      depth: outer.depth + 1,
    };
  }

  *#pieceOf(element: Element, outer: Around): Walk<Piece> {
    if (this.#isCut || this.#used > this.#enough || this.#made > most.elements) return void (this.#isCut = true);
    if (++this.#seen % 64 === 0 && performance.now() > this.deadline) yield;
    const before = this.#kept.get(element);
    const since = Math.max(outer.since, this.#shaken.get(element) ?? 0, this.#changed.get(element) ?? 0);
    if (before && before.at >= since && !this.#looksOther(element, before)) {
      this.#used += before.used;
      this.#hidden += before.hidden;
      return before.piece;
    }
    if (++this.#made % 16 === 0 && performance.now() > this.deadline) yield;
    const at = this.clock;
    const [used, hidden] = [this.#used, this.#hidden];
    const style = styleOf(element);
    const how = howOf(style);
    let piece = yield* this.#make(element, style, how, outer);
    if (this.restless.has(element)) piece = map(piece, quiet);
    if (!this.#isCut)
      this.#kept.set(element, { piece, at, how, used: this.#used - used, hidden: this.#hidden - hidden });
    return piece;
  }
  #looksOther(element: Element, before: Kept): boolean {
    if ((this.#nudged.get(element) ?? 0) <= before.at) return false;
    this.#nudged.delete(element);
    const { display, visibility, opacity } = howOf(styleOf(element));
    const { how } = before;
    return display !== how.display || visibility !== how.visibility || opacity < 0.1 !== how.opacity < 0.1;
  }

  *#make(element: Element, style: CSSStyleDeclaration, how: How, outer: Around): Walk<Piece> {
    const tag = tagOf(element);
    const { display } = how;
    // An element that has been removed meanwhile has no display.
    if (!display || display === "none" || skipped.has(tag) || has(element, privately)) return;
    if (display !== "inline" && style.contentVisibility === "hidden") return;
    const role = roleOf(element, tag);
    const inner = this.#within(element, tag, role, style, how, outer);
    const isFaint = inner.opacity < 0.1 && !isTick(element, tag);
    if (isFaint || inner.depth > most.depth || isAway(element, style, display)) {
      this.#hidden += textContent(element)!.trim().length;
      return;
    }
    if (how.visibility !== "visible") return yield* this.#children(element, tag, style, how, inner);
    const piece = yield* this.#pieceAs(element, tag, role, style, how, outer, inner);
    return isSoft(element, tag, role) ? map(piece, quiet) : piece;
  }

  *#pieceAs(
    element: Element,
    tag: string,
    role: string,
    style: CSSStyleDeclaration,
    how: How,
    outer: Around,
    inner: Around,
  ): Walk<Piece> {
    const isInline = /^(inline|contents|ruby)/.test(how.display);
    switch (tag) {
      case "br":
      case "hr":
        return "\n";
      case "input":
      case "textarea":
      case "select":
        this.#fields.set(element, stateOf(element));
        return fieldPiece(element, tag);
      case "iframe":
      case "frame":
        return yield* this.#frame(element, inner);
      case "canvas":
      case "video":
      case "audio":
        return widthOf(element) < 20 ? undefined : mediaPiece(element, tag);
    }
    if (role === "img") return imagePiece(element, tag);
    if (role === "progressbar" || role === "meter") {
      const value = (element as HTMLProgressElement).value ?? "…";
      const said = attribute(element, "aria-valuetext") || attribute(element, "aria-valuenow") || `${value}`;
      return apart(squash(`${nameOf(element, tag) || role}: ${said}`), isInline);
    }
    if (role === "row" && !isInline) return yield* this.#row(element, inner);
    const piece = yield* this.#children(element, tag, style, how, inner);
    if (tag === "pre") return codePiece(piece);
    if (tag === "dl") return pairs(piece);
    if (tag === "label") return labelPiece(element as HTMLLabelElement, piece, isInline);
    if (role === "checkbox" || role === "radio")
      return tick(attribute(element, "aria-checked") === "true", oneLine(piece) || nameOf(element, tag), isInline);
    if (outer.inControl) return isInline ? piece : alone(piece);
    if (role === "link") return linkPiece(element, piece, isInline);
    if (controls.has(role)) {
      const shown = oneLine(piece);
      // A sign such as × says less than its name.
      const text = (/[\p{L}\p{N}]/u.test(shown) && shown) || nameOf(element, tag) || shown || unseenName(element);
      return text && apart(token("[", text + states(element, tag), "]"), isInline);
    }
    if (role === "heading") {
      const level = +attribute(element, "aria-level") || +tag[1]! || 2;
      const text = oneLine(piece);
      return text && block([`${"#".repeat(Math.min(6, Math.max(1, level)))} ${text}`]);
    }
    if (role === "listitem") return item(piece, states(element, tag));
    if (landmarks.has(role)) return landmarkPiece(role, nameOf(element, tag), piece);
    if (role === "region" || tag === "section" || tag === "form") {
      const name = nameOf(element, tag);
      if (name && piece && linesOf(piece, 1)[0]?.replace(/^#+ /, "") !== name)
        return landmarkPiece(role || tag, name, piece);
    }
    const parent = asElement(parentOf(element));
    if (isEditable(element) && !(parent && isEditable(parent)))
      return landmarkPiece("textbox", nameOf(element, tag), piece);
    if (tag === "dt" && outer.isPairs && piece) return { parts: [alone(piece)!], isTerm: true };
    if (!isInline) return alone(piece, inner.isRaw);
    if (typeof piece !== "string" || inner.isRaw) return piece;
    const text = piece + (piece.trim() && states(element, tag));
    return isBeside(previousOf(element), "$", style, "Left") + text + isBeside(nextOf(element), "^", style, "Right");
  }
  /** The pieces of the children, joined. */
  *#children(element: Element, tag: string, style: CSSStyleDeclaration, how: How, inner: Around): Walk<Piece> {
    this.#met(shadowOf(element));
    const isShown = how.visibility === "visible";
    const isClosed = tag === "details" && !has(element, "open");
    const keeps = inner.isRaw || !/^(collapse|normal|nowrap)/.test(style.whiteSpaceCollapse || style.whiteSpace);
    let isRead: boolean | undefined;
    const pieces: Piece[] = [];
    for (const node of childrenOf(element)) {
      if (this.#isCut) break;
      const child = asElement(node);
      if (child) {
        if (isClosed && tagOf(child) !== "summary") continue;
        pieces.push((yield* this.#pieceOf(child, inner)) || this.#gapOf(child));
      } else if (typeOf(node) === 3 && isShown && !isClosed) {
        const length = lengthOf(node as Text);
        let text = length <= most.step ? dataOf(node as Text, 0, length) : yield* this.#long(node as Text, keeps);
        if (/\S/.test(text)) {
          isRead ??= !hasDots(element, style) && isLegible(element, style, inner);
          const seen = clean(text);
          // Some characters without a width are in any text; more of them are a text of their own.
          if (text.length - seen.length > 8) this.#hidden += text.length - seen.length;
          if (!isRead) this.#hidden += seen.trim().length;
          text = isRead ? seen : "";
          this.#used += text.length;
        }
        pieces.push(keeps ? text : text.replace(/\s+/g, " "));
      }
    }
    return join(pieces, isRow(how.display, style) && !inner.isPairs, inner.isRaw);
  }

  /** What an element without a text sets apart: an empty block two lines, an image without a name two words. */
  #gapOf(element: Element): string | undefined {
    const display = this.#kept.get(element)?.how.display ?? "none";
    if (display === "none" || display === "contents") return;
    if (display === "inline") return /^(svg|img|input)$/.test(tagOf(element)) ? " " : undefined;
    const { position } = styleOf(element);
    return position === "absolute" || position === "fixed" ? undefined : display.startsWith("inline") ? " " : "\n";
  }

  /** As much of a long text as this look has room for. */
  *#long(node: CharacterData, keeps: boolean): Walk<string> {
    let text = "";
    for (let at = 0; at < lengthOf(node); at += most.step) {
      if (this.#used + text.length > this.#enough) {
        this.#isCut = true;
        break;
      }
      const step = dataOf(node, at, most.step);
      text += keeps ? step : step.replace(/\s+/g, " ");
      if (performance.now() > this.deadline) yield;
    }
    return text;
  }

  *#row(row: Element, inner: Around): Walk<Piece> {
    const cells: Piece[] = [];
    let isHead = true;
    for (const node of childrenOf(row)) {
      const cell = asElement(node);
      if (!cell) continue;
      const tag = tagOf(cell);
      const isCell = roleOf(cell, tag) === "cell";
      const piece = yield* this.#pieceOf(cell, inner);
      if (isCell ? styleOf(cell).display === "none" : piece === undefined) continue;
      isHead &&= tag === "th" || attribute(cell, "role") === "columnheader";
      cells.push(piece);
    }
    const parent = asElement(parentOf(row));
    const isFirst = !previousElement(row) && !(parent && tagOf(parent) === "tfoot");
    return cells.length ? rowPiece(cells, isHead && isFirst) : undefined;
  }

  *#frame(frame: Element, inner: Around): Walk<Piece> {
    if (widthOf(frame) < 20 || heightOf(frame) < 20) return;
    const document = documentIn(frame);
    const body = document && bodyOf(document);
    if (!body || inner.frames >= most.frames) return frameLine(frame);
    this.#frameOf.set(document, frame);
    this.#met(document);
    return alone(yield* this.#pieceOf(body, { ...inner, ground: white, frames: inner.frames + 1 }));
  }

  /** Shadow trees, and documents of frames, have to be followed. */
  #met(root: Document | ShadowRoot | null): void {
    if (root) this.#meet(root);
  }
}
