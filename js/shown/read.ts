/**
 * The reader: what a page shows, as lines. A walk makes a piece of each element, and keeps it until
 * something in the element changes, or something around it that may show or hide it. It can pause
 * at any element.
 */
import { type Field, hasDots, isAccount, isSecretName, privately, withoutSecrets } from "../share/secrets.ts";
import * as dom from "./dom.ts";
import { attribute, has, tagOf } from "./dom.ts";
import { alone, type Block, block, join, linesOf, map, oneLine, type Piece, pairs, type Row, write } from "./lines.ts";
import * as make from "./pieces.ts";
import {
  controls,
  isHeadCell,
  isTrue,
  landmarks,
  nameOf,
  roleOf,
  shortAddress,
  skipped,
  states,
  unseenName,
} from "./roles.ts";
import { groundOf, hides, isFlat, isLegible, isPlaced, rootGround } from "./sight.ts";
import { clean, cut, escaped, asRead, linked, plain, quiet, squash, token } from "./text.ts";

/**
 * Characters of a look, and of what rows are made of, its elements, elements and frames in each
 * other, and one step of a long text.
 */
const most = { text: 200_000, rows: 2_000_000, elements: 250_000, depth: 512, frames: 8, step: 50_000 };

/**
 * What is around an element that matters for it: when that has last changed, the ground and
 * opacity, and whether a box without a size cuts it off; whether it is in a link or button, in
 * code, or in a list of terms; and how many frames and elements are around it.
 */
const inside = { isClipped: false, inControl: false, isRaw: false, isPairs: false };
const nothing = { since: 0, ground: rootGround, opacity: 1, ...inside, frames: 0, depth: 0 };
type Around = typeof nothing;

const howOf = (style: CSSStyleDeclaration) => {
  const { display, visibility, opacity, color, fontSize, clipPath, position } = style;
  const sign = display + visibility + (+opacity < 0.1) + color + fontSize + clipPath + position;
  return { display, visibility, opacity: +opacity, sign };
};
type How = ReturnType<typeof howOf>;
/** An element, how it is shown, and what is around its children. */
type Kind = { element: Element; tag: string; role: string; isInline: boolean };
type Shown = Kind & { style: CSSStyleDeclaration; how: How; inner: Around };

/** Of a piece or a look: characters, those that are hidden, and elements. */
type Sum = { used: number; hidden: number; elements: number };
/** A piece is valid if nothing has changed since `at`, when it was begun. */
type Kept = Sum & { piece: Piece; at: number; how: How };

/** A text, what of it is news if it changes, and how much hidden text is left out. */
export type Look = { text: string; loud: string; note: string };
/**
 * What to look at: the page, or a part, null if it is not there; after some characters; with links'
 * addresses; for rows.
 */
export type Sight = { part?: Element | null | undefined; from?: number; links?: boolean; rows?: boolean };
type Walk<T> = Generator<void, T>;

const isTick = (element: Element, tag: string) =>
  tag === "input" && /^(checkbox|radio|file)$/.test((element as HTMLInputElement).type);
/** What says how long ago or how far something is changes by itself. */
const soft = /^(time|relative-time|timer|marquee|progressbar)$/;
const isMeter = /^(progress(bar)?|meter)$/;
const isSoft = (element: Element, tag: string, role: string) =>
  soft.test(role || tag) || attribute(element, "aria-live") === "off";
const stateOf = (field: Element): unknown => {
  if (tagOf(field) === "label") return dom.controlOf(field);
  const { value, checked, selectedOptions } = field as HTMLInputElement & HTMLSelectElement;
  return `${value} ${checked} ${selectedOptions?.length}`;
};

/** Whether what a person types into an element that is no field is a secret: by its names, or as a number. */
const isSecretText = (box: Element, name: string): boolean =>
  isSecretName(name, attribute(box, "id")) || isAccount(dom.textContent(box)!.slice(0, 50));

/** What is beside a code, and no box of it. */
const unread = new Set(["label", ...skipped]);
/** A text without what stands for its characters, or between them. */
const bare = (text: string) => text.replace(/[\s·•–—|._○*-]/g, "");

const keepsSpace = ({ whiteSpaceCollapse, whiteSpace }: CSSStyleDeclaration) =>
  !/^(collapse|normal|nowrap)/.test(whiteSpaceCollapse || whiteSpace);

/**
 * A space, if an inline element stands apart from its neighbour, and there is no white space
 * between them.
 */
function gap(neighbour: Node | null, at: 0 | -1, style: CSSStyleDeclaration, side: "Left" | "Right"): string {
  const isText = neighbour && dom.typeOf(neighbour) === 3;
  if (!neighbour || (isText && /^\s?$/.test(dom.textContent(neighbour)!.at(at) ?? ""))) return "";
  return parseFloat(style[`margin${side}`]) + parseFloat(style[`padding${side}`]) >= 3 ? " " : "";
}

export class Reader {
  /** Elements whose text changes all the time by itself. */
  readonly restless = new Set<Element>();
  /** The number of times that such a text has become one that it has not been lately. */
  news = 0;
  /** Increases with each change of the page. */
  clock = 1;
  /** When the walk has to pause. */
  deadline = 0;
  /** What the last look was made of, and whether that is not all. */
  last: Block | undefined;
  isCut = false;

  readonly #document: Document;
  /** A selector of what is left out. */
  readonly #except: string | undefined;
  /** Has shadow trees and documents of frames followed. */
  readonly #meet: (root: Document | ShadowRoot | null) => void;
  /** The pieces of the last walks, which are used again until what they are made of changes. */
  #kept = new WeakMap<Element, Kept>();
  /**
   * Times of changes within a node; around it, which may hide what is in it; and beside it, which
   * may hide it.
   */
  readonly #changed = new WeakMap<Node, number>();
  readonly #shaken = new WeakMap<Element, number>();
  readonly #nudged = new WeakMap<Element, number>();
  /** Fields with a secret that were met, and what shows such a secret, with its text of then. */
  readonly #secrets = new Set<Field>();
  readonly #mirrors = new WeakMap<Element, string>();
  /** The documents of frames → the frames. */
  readonly #frameOf = new WeakMap<Node, Element>();
  /** Fields → what they had, and labels → their fields. Scripts set values without an event. */
  readonly #fields = new Map<Element, unknown>();
  /**
   * Of this walk, also by kept pieces; elements it has come to, and characters that are enough.
   */
  #sum: Sum = { used: 0, hidden: 0, elements: 0 };
  #steps = 0;
  #enough = 0;

  constructor(document: Document, meet: (root: Document | ShadowRoot | null) => void, except?: string) {
    this.#document = document;
    this.#meet = meet;
    this.#except = except;
  }

  /** Whether a page or the user has excluded an element, or it shows a secret. */
  isLeftOut(element: Element): boolean {
    const isExcluded = !!this.#except && dom.isLike(element, this.#except);
    return has(element, privately) || isExcluded || this.#isMirror(element);
  }
  /** Whether it shows a secret, also as dots, or moved. What has another text later is read. */
  #isMirror(element: Element): boolean {
    const secret = this.#mirrors.get(element);
    if (secret === undefined) return false;
    const text = dom.textContent(element)!;
    if (!text.trim()) return false;
    const now = bare(text);
    return !now || now === secret || !this.#mirrors.delete(element);
  }
  /** A text that was made, as agents read it. */
  asRead(text: string, links: boolean): { text: string; loud: string } {
    return asRead(links ? linked(text, shortAddress) : plain(text));
  }

  /** Forgets the pieces of a node and of all around it. */
  stale(node: Node | null | undefined): void {
    for (const all = [node]; all.length; )
      for (let n = all.pop(); n && this.#changed.get(n) !== this.clock; n = this.#outside(n)) {
        this.#changed.set(n, this.clock);
        all.push(...(dom.usersOf.get(n) ?? []), dom.controlOf(n)); // a field has the name of its label
      }
  }
  #outside(node: Node): Node | null | undefined {
    const type = dom.typeOf(node);
    if (type === 11) return (node as ShadowRoot).host;
    return type === 9 ? this.#frameOf.get(node) : dom.parentOf(node);
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
    this.#secrets.clear();
    this.last = undefined;
  }

  /** The look of now. It pauses when the deadline is over. */
  *look({ part, from: asked = 0, links = false, rows = false }: Sight): Walk<Look> {
    const from = Math.max(0, Math.floor(asked) || 0);
    for (const [field, before] of this.#fields) {
      const isGone = !dom.isConnected(field);
      if (isGone) this.#fields.delete(field);
      if (isGone || stateOf(field) !== before)
        for (const one of [field, before]) if (typeof one === "object") this.stale(one as Element);
    }
    // The field whose secret a part shows may be around it.
    let near = part;
    for (let up = 0; near && up < 8; up++) near = dom.parentElement(near) ?? near;
    for (const one of near ? Array.from(dom.all(near, "input,textarea") as NodeListOf<Field>).slice(0, 1000) : [])
      if (one.value.length < 50 && one.value && make.isKept(one)) this.#secrets.add(one);
    for (const field of this.#secrets) this.#mirror(field);
    const { origin, pathname, search } = location;
    const title = cut(squash(dom.titleOf(this.#document)), 200);
    const url = origin + cut(withoutSecrets(pathname + search), 200);
    const head = part !== undefined ? [] : [`title: ${title}`, `url: ${url}`];
    // A line may be shorter than what it is made of, and a row has as much as its cells.
    for (let enough = from + (rows ? most.rows : most.text); ; enough *= 2) {
      this.#enough = enough;
      const sum = (this.#sum = { used: 0, hidden: 0, elements: 0 });
      this.isCut = false;
      const root = part === undefined ? dom.rootOf(this.#document) : part;
      const around = root && dom.isVisible(root) ? this.#around(root) : undefined;
      const piece = around && alone(yield* this.#pieceOf(root!, around));
      this.last = piece;
      const lines = [...head];
      if (piece) write(piece, lines);
      const whole = [...lines, ""].join("\n");
      const { text, loud } = this.asRead(whole, links);
      if (this.isCut && sum.elements <= most.elements && text.length - from <= most.text) continue;
      const note = sum.hidden ? `(hidden text of ${sum.hidden} characters is left out)\n` : "";
      return { text: this.#page(text, from), loud: `${loud}${this.news}`, note };
    }
  }

  /**
   * At most so much of a text, after so many characters, and what to read next. Code in it begins
   * and ends anew.
   */
  #page(text: string, from: number): string {
    const isLast = text.length - from <= most.text;
    const end = text.lastIndexOf("\n", from + most.text) + 1;
    const half = /[\ud800-\udbff]/.test(text[from + most.text - 1] ?? ""); // of a pair, which is not cut in two
    const to = isLast ? text.length : end > from + most.text / 2 ? end : from + most.text - +half;
    const isCode = (at: number) => (text.slice(0, at).match(/^[ -]*```$/gm) ?? []).length % 2 > 0;
    let page = text.slice(from, to).replace(/^[\udc00-\udfff]/, "");
    if (isCode(from)) page = "```\n" + page;
    else if (from && text[from - 1] !== "\n") page = escaped(page);
    if (!isLast) page += `${to === end ? "" : "\n"}${isCode(to) ? "```\n" : ""}(the page goes on: read from ${to})\n`;
    return page + (isLast && this.isCut ? "(the page goes on, and is too large)\n" : "");
  }

  /**
   * What is around an element, as a walk would have met it; undefined if the walk would not come to
   * the element.
   */
  #around(element: Element): Around | undefined {
    let outer = this.#outside(element);
    if (outer && dom.typeOf(outer) !== 1) outer = this.#outside(outer);
    if (!outer) return nothing;
    const around = this.#around(outer as Element);
    const shown = around && this.#shown(outer as Element, around);
    return shown && !this.isLeftOut(outer as Element) && !hides(shown) ? shown.inner : undefined;
  }
  #shown(element: Element, outer: Around, style = dom.styleOf(element), how = howOf(style)): Shown {
    const tag = tagOf(element);
    const role = roleOf(element, tag);
    const isInline = /^(inline|contents|ruby)/.test(how.display);
    const inner = {
      since: Math.max(outer.since, this.#shaken.get(element) ?? 0),
      ground: groundOf(element, style, outer.ground),
      opacity: outer.opacity * how.opacity,
      isClipped: (outer.isClipped && !isPlaced(style)) || isFlat(element, tag, style, how.display),
      inControl: outer.inControl || controls.has(role),
      isRaw: outer.isRaw || tag === "pre",
      isPairs: tag === "dl" || (outer.isPairs && tag === "div"),
      frames: outer.frames + +(tag === "iframe"),
      depth: outer.depth + 1,
    };
    return { element, tag, role, style, how, isInline, inner };
  }

  *#pieceOf(element: Element, outer: Around): Walk<Piece> {
    const sum = this.#sum;
    this.isCut ||= sum.used > this.#enough || sum.elements > most.elements;
    if (this.isCut) return;
    if (++this.#steps % 16 === 0 && performance.now() > this.deadline) yield;
    const before = this.#kept.get(element);
    const since = Math.max(outer.since, this.#shaken.get(element) ?? 0);
    const isFresh = before && before.at >= since && before.at >= (this.#changed.get(element) ?? 0);
    if (isFresh && !this.#looksOther(element, before)) {
      sum.used += before.used;
      sum.hidden += before.hidden;
      sum.elements += before.elements;
      return before.piece;
    }
    const at = this.clock;
    const { used, hidden, elements } = sum;
    sum.elements++;
    const style = dom.styleOf(element);
    const how = howOf(style);
    let piece = yield* this.#make(element, style, how, outer);
    if (this.restless.has(element)) piece = map(piece, quiet);
    if (this.isCut) return piece;
    const own = { used: sum.used - used, hidden: sum.hidden - hidden, elements: sum.elements - elements };
    this.#kept.set(element, { piece, at, how, ...own });
    return piece;
  }
  #looksOther(element: Element, before: Kept): boolean {
    if ((this.#nudged.get(element) ?? 0) <= before.at) return false;
    this.#nudged.delete(element);
    return howOf(dom.styleOf(element)).sign !== before.how.sign;
  }

  *#make(element: Element, style: CSSStyleDeclaration, how: How, outer: Around): Walk<Piece> {
    // Also a field that nobody sees may have what it holds drawn beside it.
    if (make.isField.test(tagOf(element)) && make.isKept(element as Field)) {
      this.#secrets.add(element as Field);
      this.#mirror(element as Field);
    }
    // An element that has been removed meanwhile has no display.
    if (!how.display || how.display === "none" || skipped.has(tagOf(element))) return;
    if (this.isLeftOut(element)) return;
    if (style.contentVisibility === "hidden" && how.display !== "inline") return;
    const shown = this.#shown(element, outer, style, how);
    const { tag, role, inner } = shown;
    const isFaint = inner.opacity < 0.1 && !isTick(element, tag);
    if (isFaint || inner.depth > most.depth || hides(shown)) {
      this.#sum.hidden += dom.textContent(element)!.trim().length;
      return;
    }
    if (how.visibility !== "visible" || inner.isClipped) return yield* this.#children(shown);
    const piece = yield* this.#pieceAs(shown, outer);
    return isSoft(element, tag, role) ? map(piece, quiet) : piece;
  }

  *#pieceAs(shown: Shown, outer: Around): Walk<Piece> {
    const { element, tag, role, style, isInline, inner } = shown;
    if (tag === "br" || tag === "hr") return "\n";
    if (tag === "iframe" || tag === "frame") return yield* this.#frame(element, inner);
    if (/^(canvas|video|audio)$/.test(tag))
      return dom.widthOf(element) < 20 ? undefined : make.mediaPiece(element, tag);
    if (make.isField.test(tag)) {
      this.#fields.set(element, stateOf(element));
      const field = element as Field;
      const isRead = make.isTick(field) || isLegible(element, element, style, inner);
      if (!isRead && !make.isKept(field)) this.#sum.hidden += make.fieldText(element, tag).length;
      return make.fieldPiece(element, tag, isRead);
    }
    // A picture made of elements, without a name, is what is in it.
    const isPicture =
      tag === "img" || tag === "svg" || (role === "img" && (nameOf(element, tag) || isTrue(element, "aria-hidden")));
    if (isPicture) return make.imagePiece(element, tag);
    if (isMeter.test(role) || isMeter.test(tag)) {
      const value = (element as HTMLProgressElement).value ?? "…";
      const now = attribute(element, "aria-valuetext") || attribute(element, "aria-valuenow");
      return make.apart(squash(`${nameOf(element, tag) || role}: ${cut(squash(`${now || value}`), 80)}`), isInline);
    }
    const isText = (n: Node) => dom.typeOf(n) === 3 && /\S/.test(dom.textContent(n)!);
    if (role === "row" && !dom.childrenOf(element).some(isText) && !isInline && tag !== "pre")
      return yield* this.#row(element, inner);
    const parent = dom.parentElement(element);
    const isBox = dom.isEditable(element) && !(parent && dom.isEditable(parent));
    if (isBox && isSecretText(element, nameOf(element, tag)))
      return make.apart(token("{", `${nameOf(element, tag)}: (secret)`, "}"), isInline);
    const piece = yield* this.#children(shown);
    if (tag === "pre") return piece;
    if (tag === "dl") return pairs(piece);
    if (tag === "label") {
      const field = dom.controlOf(element);
      this.#fields.set(element, field);
      if (field) this.#label(element, field);
      return make.labelPiece(field as HTMLInputElement | null, piece, isInline);
    }
    if (role === "checkbox" || role === "radio") {
      return make.tick(isTrue(element, "aria-checked"), oneLine(piece) || nameOf(element, tag), isInline);
    }
    if (outer.inControl) return isInline ? piece : alone(piece);
    if (role === "link") return make.linkPiece(element, piece, isInline);
    if (controls.has(role)) {
      const sign = oneLine(piece);
      // A sign such as × says less than its name.
      const said = /[\p{L}\p{N}]/u.test(sign) ? sign : nameOf(element, tag);
      const text = said || sign || unseenName(element);
      return text && make.apart(token("[", text + states(element, tag), "]"), isInline);
    }
    if (role === "heading") {
      const level = +attribute(element, "aria-level") || +tag[1]! || 2;
      const text = oneLine(piece);
      return text && block([`${"#".repeat(Math.min(6, Math.max(1, level)))} ${text}`]);
    }
    if (role === "listitem") return make.item(piece, states(element, tag));
    if (landmarks.has(role)) return make.landmarkPiece(role, nameOf(element, tag), piece);
    if (role === "region" || tag === "section" || tag === "form") {
      const name = nameOf(element, tag);
      if (name && piece && linesOf(piece, 1)[0]?.replace(/^#+ /, "") !== name)
        return make.landmarkPiece(role || tag, name, piece);
    }
    if (isBox) return make.landmarkPiece("textbox", nameOf(element, tag), piece);
    if (tag === "dt" && outer.isPairs && piece) return { parts: [alone(piece)!], isTerm: true };
    if (!isInline) return alone(piece, inner.isRaw);
    if (typeof piece !== "string" || inner.isRaw) return piece;
    const text = piece + (piece.trim() && states(element, tag));
    const before = gap(dom.previousOf(element), -1, style, "Left");
    return before + text + gap(dom.nextOf(element), 0, style, "Right");
  }

  /**
   * A label has the tick of its field, and a field the name of its label, which may be a new one.
   */
  #label(label: Element, field: Element): void {
    dom.use(field, label);
    if (dom.usersOf.get(label)?.has(field)) return;
    dom.use(label, field);
    if (this.#kept.has(field)) {
      this.clock++;
      this.stale(field);
    }
  }

  /**
   * Widgets for codes, such as input-otp, have a field that nobody sees, and draw its text beside
   * it, a box for each character.
   */
  #mirror(field: Field): void {
    const value = bare(field.value);
    let inner: Element = field;
    for (let up = 0, e = dom.parentElement(inner); value && e && up < 4; up++, inner = e, e = dom.parentElement(e)) {
      const others: Element[] = [];
      let text = "";
      let met = 0;
      for (const one of dom.elementsIn(e)) {
        const own = one === inner || unread.has(tagOf(one)) ? "" : bare(dom.textContent(one)!);
        if (own) others.push(one);
        text += own;
        // Each look is made for it, and a code has few boxes.
        if (text.length > value.length || ++met > 256) break;
      }
      if (text !== value) continue;
      for (const one of others) {
        if (this.#isMirror(one)) continue;
        this.#mirrors.set(one, bare(dom.textContent(one)!));
        this.clock++;
        this.shake(one);
      }
    }
  }

  /** The pieces of the children, joined. */
  *#children({ element, tag, style, how, inner }: Shown): Walk<Piece> {
    const root = dom.shadowOf(element);
    this.#meet(root);
    const isSeen = how.visibility === "visible" && !inner.isClipped;
    const isClosed = tag === "details" && !has(element, "open");
    const [summary] = isClosed ? dom.all(element, ":scope > summary") : [];
    // Both are asked for only where a text needs them.
    let isRead: boolean | undefined;
    let keeps: boolean | undefined;
    /** White space that makes no line is short. */
    const short = (run: string) => (inner.isRaw ? run.slice(0, 1000) : keeps && run.includes("\n") ? "\n" : " ");
    const pieces: Piece[] = [];
    for (const node of dom.childrenOf(element, root)) {
      if (this.isCut) break;
      const child = dom.asElement(node);
      if (child) {
        if (isClosed && child !== summary) continue;
        pieces.push((yield* this.#pieceOf(child, inner)) || this.#gapOf(child));
      } else if (dom.typeOf(node) === 3 && !isClosed) {
        const { length } = node as Text;
        const isLong = length > most.step;
        let text = "";
        for (let at = 0; at < length && !this.isCut; at += most.step) {
          let step = (node as Text).substringData(at, most.step);
          if (/[^\S ]| {2}/.test(step)) {
            keeps ??= inner.isRaw || keepsSpace(style);
            step = step.replace(/\s+/g, short);
          }
          const isText = /\S/.test(step);
          if (isText) {
            isRead ??= isSeen && !hasDots(element, style) && isLegible(node, element, style, inner);
            if (!isRead) {
              // Nobody sees the rest either.
              if (how.visibility === "visible")
                this.#sum.hidden += isLong ? length - at : this.#seen(step).trim().length;
              break;
            }
            step = this.#seen(step);
            this.#sum.used += step.length;
          }
          if (isText || isSeen) text += step;
          if (isLong) {
            if (performance.now() > this.deadline) yield;
            this.isCut = this.#sum.used > this.#enough;
          }
        }
        pieces.push(text);
      }
    }
    const piece = join(pieces, make.isRow(how.display, style) && !inner.isPairs, inner.isRaw);
    return tag === "pre" ? make.codePiece(piece) : piece;
  }

  /**
   * What an element without a text sets apart: an empty block two lines, an image without a name
   * two words.
   */
  #gapOf(element: Element): string | undefined {
    const display = this.#kept.get(element)?.how.display ?? "none";
    if (display === "none" || display === "contents") return;
    if (display === "inline") return /^(svg|img|input)$/.test(tagOf(element)) ? " " : undefined;
    if (!isPlaced(dom.styleOf(element))) return display.startsWith("inline") ? " " : "\n";
  }

  /**
   * A text without what has no width. Some of that is in any text; more of it is a text of its own.
   */
  #seen(text: string): string {
    const seen = clean(text);
    // Soft hyphens say where a word may end.
    const gone = text.length - seen.length;
    if (gone > 8 && gone - (text.match(/\u00ad/g)?.length ?? 0) >= 8) this.#sum.hidden += gone;
    return seen;
  }

  *#row(row: Element, inner: Around): Walk<Piece> {
    const cells: Row["cells"] = [];
    let isHead = !dom.previousElement(row);
    for (const cell of dom.childrenOf(row).map(dom.asElement)) {
      if (!cell) continue;
      const tag = tagOf(cell);
      const piece = yield* this.#pieceOf(cell, inner);
      const isCell = roleOf(cell, tag) === "cell";
      if (isCell ? dom.styleOf(cell).display === "none" : piece === undefined) continue;
      isHead &&= isHeadCell(cell);
      cells.push({ cell, piece });
    }
    return make.rowPiece(row, cells, isHead);
  }

  *#frame(frame: Element, inner: Around): Walk<Piece> {
    const { width, height } = dom.boxOf(frame);
    if (width < 20 || height < 20 || width < dom.widthOf(frame) / 4) return;
    const document = dom.documentIn(frame);
    const root = document && dom.rootOf(document);
    if (!root || inner.frames > most.frames) return make.frameLine(frame);
    this.#frameOf.set(document, frame);
    this.#meet(document);
    return alone(yield* this.#pieceOf(root, inner));
  }
}
