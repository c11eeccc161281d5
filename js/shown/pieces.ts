/** The pieces of elements that are no texts: fields, images, tables' rows, links. */
import { type Field, hasDots, isPrivate, isSecret, remember } from "../share/secrets.ts";
import { all, attribute, has, isVisible, styleOf, textContent } from "./dom.ts";
import {
  alone,
  type Block,
  block,
  buttons,
  hasRow,
  isBlock,
  linesOf,
  madeOf,
  oneLine,
  type Piece,
  type Row,
  spanOf,
} from "./lines.ts";
import { isDisabled, isTrue, nameOf, states, targetOf, unseenName } from "./roles.ts";
import { isClearFill, isDrawn, isSeen } from "./sight.ts";
import { clean, codeLine, cut, line, mark, squash, token, withoutOurs } from "./text.ts";

const most = { value: 500, lines: 10_000, image: 240, name: 80 };

/** Sets a piece apart from its neighbours in the line, if it is in one. */
export const apart = (text: string, isInline: boolean): Piece => (isInline ? ` ${text} ` : alone(text));

export const tick = (isOn: boolean, name: string, isInline: boolean): Piece =>
  apart(`${mark.ours}[${isOn ? "x" : " "}] ${name}`, isInline);

export const isField = /^(input|select|textarea)$/;
export const isTick = ({ type }: Field): boolean => /^(checkbox|radio)$/.test(type);
export const isButton = ({ type }: Field): boolean => /^(submit|button|reset|image)$/.test(type);
/** Whether a person sees a label of the field, which then has its tick. */
export const isLabelled = (field: Field): boolean => Array.from(field.labels ?? []).some(isSeen);
/** Whether the value is kept from agents. A password's field is remembered. */
export function isKept(field: Field): boolean {
  if (field.type === "password") remember(field);
  return isSecret(field);
}

/** `isRead`: a person can read what is in the field. Names need not be visible, so they are short. */
export function fieldPiece(element: Element, tag: string, isRead = true): Piece {
  const field = element as HTMLInputElement;
  const { type } = field;
  if (type === "hidden") return;
  const name = nameOf(field, tag);
  if (isButton(field)) {
    const sign = cut(squash(field.value), isRead ? most.value : most.name);
    return apart(token("[", (sign || name || type) + states(field, tag), "]"), true);
  }
  if (isTick(field)) return isLabelled(field) ? undefined : tick(field.checked, name, true);
  if (isKept(field)) return apart(token("{", `${name || type}: (secret)`, "}"), true);
  const [first, ...more] = (isRead ? fieldText(field, tag) : "").split("\n");
  const called = name || squash(attribute(field, "name")) || (tag === "input" ? type : tag);
  if (more.length) return block([`{${called}:`, ...[first!, ...more].map(line), "}"]);
  const state = isDisabled(field) ? " (disabled)" : "";
  return apart(token("{", `${called}: ${first}${state}`, "}"), true);
}

/** What a person sees in a field that is no tick. */
export function fieldText(field: Element, tag: string): string {
  let { value } = field as HTMLInputElement;
  const { type, files } = field as HTMLInputElement;
  if (tag === "select")
    value = Array.from((field as HTMLSelectElement).selectedOptions)
      .filter((option) => !isPrivate(option))
      .map(({ label }) => squash(label))
      .join(", ");
  if (type === "file") value = Array.from(files ?? [], ({ name }) => squash(name)).join(", ");
  return clean(cut(value, tag === "textarea" ? most.lines : most.value));
}

/**
 * A label has the tick of its field. For any other field that a person sees, the field has the
 * label's text.
 */
export function labelPiece(field: HTMLInputElement | null, inner: Piece, isInline: boolean): Piece {
  const text = oneLine(inner);
  if (field && isTick(field)) return tick(field.checked, text || nameOf(field, "input"), isInline);
  if (field && isField.test(field.localName) && isSeen(field)) {
    const own = oneLine(fieldPiece(field, field.localName));
    const rest = squash(text.replace(own, "")).replace(/\s*:$/, "");
    if (nameOf(field, field.localName).includes(rest))
      return text.includes(own) ? apart(mark.ours + own, isInline) : undefined;
  }
  return isInline ? inner : alone(inner);
}

export function linkPiece(link: Element, inner: Piece, isInline: boolean): Piece {
  const to = targetOf(link);
  const open = to && `${mark.link}[${mark.linked}`;
  const end = states(link, "a") + (to && `${mark.link}](${to})${mark.linked}`);
  if (isBlock(inner)) {
    const lines = linesOf(inner, Infinity);
    const [, begin, first] = /^(#+ |- |\| )?(.*)$/s.exec(lines[0] ?? "")!;
    return madeOf(inner, [(begin ?? "") + open + first + end, ...lines.slice(1)]);
  }
  const spaced = (inner ?? "").replace(/\s+/g, " ");
  const text = fuller(link, spaced.trim()) || nameOf(link, "a") || unseenName(link);
  if (!text) return;
  if (!isInline) return block([open + line(text) + end]);
  return (spaced[0] === " " ? " " : "") + open + text + end + (spaced.at(-1) === " " ? " " : "");
}
/** A link "5" with the label "5 comments" says what it counts. */
function fuller(link: Element, text: string): string {
  const label = text.length < 5 ? cut(squash(attribute(link, "aria-label")), 80) : "";
  return label.includes(text) ? label : text;
}

export function imagePiece(image: Element, tag: string): Piece {
  if (isTrue(image, "aria-hidden") && tag !== "svg") return;
  const isShown = (e: Element) =>
    isVisible(e, { opacityProperty: true, visibilityProperty: true }) &&
    !isClearFill(styleOf(e)) &&
    !hasDots(e) &&
    !isPrivate(e);
  const isRead = (e: Element) => isDrawn(e, image) && isShown(e) && Array.from(all(e, "*")).every(isShown);
  const drawn = Array.from(all(image, "text, foreignObject")).filter(isRead);
  const text = tag === "svg" ? cut(squash(drawn.map(textContent).join(" ")), most.image) : "";
  const title = tag === "svg" ? Array.from(all(image, ":scope > title"), textContent)[0] : "";
  const name = nameOf(image, tag) || cut(squash(title ?? ""), 80);
  if (text) return apart(`${mark.ours}(drawing${name && ` ${name}`}: ${text})`, true);
  return name && apart(`${mark.ours}(image: ${name})`, true);
}

export function mediaPiece(media: Element, tag: string): Piece {
  const name = nameOf(media, tag);
  const state = tag === "canvas" ? "" : (media as HTMLMediaElement).paused ? ", paused" : ", playing";
  return block([`(${tag}${name && ` ${name}`}${state})`]);
}

export function frameLine(frame: Element): Piece {
  const { src } = frame as HTMLIFrameElement;
  const origin = !has(frame, "srcdoc") && URL.canParse(src) ? new URL(src).origin : "null";
  const name = nameOf(frame, "iframe");
  return block([`(frame${origin === "null" ? "" : ` of ${origin}`}${name && `: ${name}`})`]);
}

/**
 * A row of a table; the lines of its cells if those are long, since then the table is for the
 * layout.
 */
export function rowPiece(element: Element, cells: Row["cells"], isHead: boolean): Piece {
  const isLong = cells.some(({ piece }) => isBlock(piece) && linesOf(piece, 9).length > 8);
  const row = { element, cells, isLong };
  if (isLong) return { parts: cells.flatMap(({ piece }) => alone(piece) ?? []), row };
  const texts = cells.map(({ piece }) => oneLine(piece).replaceAll("|", "\\|"));
  // Without a text it may span rows that have one.
  if (!texts.some(Boolean)) return cells.some(({ cell }) => spanOf(cell).y !== 1) ? { parts: [], row } : undefined;
  if (cells.length === 1) {
    const whole = alone(cells[0]!.piece);
    return whole && !hasRow(whole) && !buttons.test(texts[0]!) ? { ...whole, row } : whole;
  }
  const line = `| ${texts.join(" | ")} |`;
  return { parts: isHead ? [line, `|${"---|".repeat(texts.length)}`] : [line], row };
}

export function item(inner: Piece, state: string): Piece {
  const whole = alone(inner);
  if (!whole) return;
  const add = (part: string | Block, x: number): string | Block => {
    if (!isBlock(part)) return x ? part : part + state;
    return !x && part.row ? { ...part, parts: part.parts.map(add) } : part;
  };
  const parts = whole.parts.map(add);
  return { parts: [{ ...whole, parts } as Block], first: "- ", next: "  " };
}

/** Code, as it is. */
export function codePiece(inner: Piece): Piece {
  const lines = isBlock(inner) ? linesOf(inner, Infinity) : withoutOurs(inner ?? "").split("\n");
  while (lines.length && !lines[0]!.trim()) lines.shift();
  while (lines.length && !lines.at(-1)!.trim()) lines.pop();
  if (lines.length < 2 && !lines[0]?.includes("`")) return block(lines.map((one) => `\`${one.trim()}\``));
  return madeOf(inner, ["```", ...lines.map(codeLine), "```"]);
}

/** A landmark with its lines; nothing if it has neither lines nor a name. */
export function landmarkPiece(role: string, name: string, inner: Piece): Piece | undefined {
  const whole = alone(inner);
  const begin = `--- ${role}${name && `: ${name}`}`;
  if (whole || name) return { parts: [begin, ...(whole ? [whole] : []), "---"], isLandmark: true };
}

/** Whether the children of an element are in a row, as far as the layout says so. */
export const isRow = (display: string, style: CSSStyleDeclaration): boolean =>
  /flex|grid/.test(display) ? !style.flexDirection.startsWith("column") : display === "table-row";
