/**
 * Whether a person sees an element. Hidden text is the way to mislead an agent behind its user's
 * back, so what the page only pretends to show is left out: moved away, clipped, faint, tiny, or of
 * the colour of its ground.
 *
 * Not known: text that is covered by something else or cut off below it, fonts without shapes, filters, blend modes,
 * backs of what is turned, and styles of a first line.
 */
import * as dom from "./dom.ts";
import { boxOf, styleOf } from "./dom.ts";

/** Red, green, blue from 0 to 255, and the opacity from 0 to 1. */
export type Colour = readonly [number, number, number, number];
export const rootGround: Colour = [255, 255, 255, 1];
const dark: Colour = [18, 18, 18, 1];
const prefersDark = "(prefers-color-scheme: dark)";

/**
 * One for all texts: each change of a page adjusts all ranges in it, and those of a look would be
 * thousands.
 */
const range = new Range();
const colours = new Map<string, Colour>();
let canvas: OffscreenCanvasRenderingContext2D | null | undefined;

/** A computed colour. There are many notations, which the browser draws. */
function colourOf(css: string): Colour {
  let colour = colours.get(css);
  if (!colour) {
    const numbers = css.startsWith("rgb") && css.match(/[\d.]+/g)?.map(Number);
    if (numbers) colour = [numbers[0]!, numbers[1]!, numbers[2]!, numbers[3] ?? 1];
    else {
      canvas ??= new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true })!;
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = "#000"; // of what is no colour, such as url(#gradient)
      canvas.fillStyle = css;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      colour = [r!, g!, b!, a! / 255];
    }
    if (colours.size > 1000) colours.clear(); // a page may make up new ones forever
    colours.set(css, colour);
  }
  return colour;
}

/** Whether a drawing's text has no colour, or none that a person sees. */
export const isClearFill = ({ fill, fillOpacity }: CSSStyleDeclaration): boolean =>
  fill === "none" || colourOf(fill)[3] * +fillOpacity < 0.1;

/** Whether two colours look the same, the first one of an opacity. */
const isLike = (colour: Colour, ground: Colour, alpha = 1): boolean =>
  [0, 1, 2].every((i) => Math.abs(colour[i]! - ground[i]!) * alpha < 12);

/** The colour that one above another makes. */
const above = (top: Colour, ground: Colour): Colour => {
  const mix = (i: 0 | 1 | 2) => ground[i] + (top[i] - ground[i]) * top[3];
  return [mix(0), mix(1), mix(2), 1];
};

/** Whether a picture on a ground is of other colours than this one. What is in an address is not known. */
function isUnlike(image: string, ground: Colour, colour: Colour): boolean {
  const tints = !image.includes("url(") && image.match(/[a-z]+\([^()]*\)/g);
  return image !== "none" && (!tints || tints.some((one) => !isLike(above(colourOf(one), ground), colour)));
}

/**
 * The ground of an element's text, on that of its parent. Below a page is white, or dark if it has
 * asked for that.
 */
export function groundOf(element: Element, style: CSSStyleDeclaration, ground: Colour): Colour {
  const isRoot = ground === rootGround && dom.tagOf(element) === "html";
  if (isRoot && style.colorScheme.includes("dark"))
    if (!style.colorScheme.includes("light") || matchMedia(prefersDark).matches) ground = dark;
  const own = style.backgroundColor;
  return own === "rgba(0, 0, 0, 0)" ? ground : above(colourOf(own), ground);
}

/** Boxes of less are for screen readers, or for agents. */
const least = 1;

/**
 * Whether an element cuts off all within it, but for what is placed elsewhere. The window scrolls a
 * page's root.
 */
export function isFlat(element: Element, tag: string, style: CSSStyleDeclaration, display: string): boolean {
  const cuts = (overflow: string) => overflow !== "visible" || /paint|strict|content/.test(style.contain);
  return (
    display !== "inline" &&
    ((cuts(style.overflowY) && dom.heightOf(element) < smallest) ||
      (cuts(style.overflowX) && dom.widthOf(element) <= least)) &&
    !/^(html|body)$/.test(tag)
  );
}

/** Whether an element is out of the flow. */
export const isPlaced = ({ position }: CSSStyleDeclaration): boolean => /^(absolute|fixed)$/.test(position);

type Hiding = { element: Element; style: CSSStyleDeclaration; inner: { isClipped: boolean } };
/** Whether all within the element is hidden, though it is rendered. */
export function hides({ element, style, inner }: Hiding): boolean {
  if (style.clipPath !== "none" && (isNothing.test(style.clipPath) || isCutOff(style.clipPath, element))) return true;
  if (style.filter !== "none" && /opacity\(0(\.0\d*)?\)|blur\(\d\d/.test(style.filter)) return true;
  if (style.maskImage !== "none" && isClear(style.maskImage)) return true;
  if (inner.isClipped && style.position !== "static") return true;
  if (!isPlaced(style)) return false;
  if (/^rect\((\d)px, \1px|^rect\([01]px, [01]px, [01]px/.test(style.clip)) return true;
  const { left, top, right, bottom, width, height } = boxOf(element);
  if (width <= least || height <= least) return style.overflowX !== "visible";
  // Nobody scrolls to what is fixed outside of the window, or to what is before the page's
  // beginning.
  const view = dom.viewOf(element);
  if (style.position === "absolute") return isBefore(element, right, bottom, 0);
  return right <= 0 || bottom <= 0 || left >= view.innerWidth || top >= view.innerHeight;
}
/** Whether a box ends so far before all that a person can scroll to. */
function isBefore(element: Element, right: number, bottom: number, by: number): boolean {
  if (right >= -by && bottom >= -by) return false;
  const back = dom.backOf(element);
  return right + back.x < -by || bottom + back.y < -by;
}
const isNothing = /(circle|ellipse)\(([0-3](\.\d*)?px|0%)|polygon\((0(px|%)? 0(px|%)?(, )?)+\)|path\(""\)/;
/** Whether an inset leaves no height or no width. */
function isCutOff(path: string, element: Element): boolean {
  const sides = /^inset\(([\d.% px-]+)/.exec(path)?.[1];
  if (!sides) return false;
  const { width, height } = boxOf(element);
  const [top, right = top, bottom = top, left = right] = sides.trim().split(" ");
  const of = (side: string, whole: number) => parseFloat(side) * (side.endsWith("%") ? whole / 100 : 1);
  return of(top!, height) + of(bottom!, height) >= height || of(right!, width) + of(left!, width) >= width;
}
/** Whether a mask lets nothing through: it is a gradient without an opaque colour. */
const isClear = (mask: string): boolean =>
  mask.includes("gradient(") && (mask.match(/rgba?\([^)]*\)/g) ?? [""]).every((one) => /^rgba.*, 0\)$/.test(one));

/**
 * Whether a text is drawn where a person sees it. Closed shadow trees need not show what is in
 * their hosts, or show it faintly. A carousel moves its slides by some screens; tricks move a text
 * by 9,999 px.
 */
function isThere(text: Node, element: Element, style: CSSStyleDeclaration): boolean {
  if (text === element) range.selectNode(text);
  else range.selectNodeContents(text);
  const { right, bottom, width, height } = range.getBoundingClientRect();
  const isNear = !isBefore(element, right, bottom, 4000);
  const isIndented = Math.abs(parseFloat(style.textIndent)) >= (style.textIndent.endsWith("%") ? 100 : 500);
  const isSeen = style.display === "contents" || dom.isVisible(element, { opacityProperty: true });
  return isNear && width > 0 && height >= smallest && !isIndented && isSeen;
}

/** Whether a person can read a text that stands in an element itself, or what is in a field. */
export function isLegible(text: Node, element: Element, style: CSSStyleDeclaration, around: Surroundings): boolean {
  const { ground, opacity } = around;
  if (parseFloat(style.fontSize) < smallest) return false;
  const colour = colourOf(style.webkitTextFillColor);
  const alpha = colour[3] * opacity;
  if (alpha < 0.1 && opacity >= 0.1 && isPainted(element, ground)) return true;
  const isSeen = alpha >= 0.1 && !isLike(colour, ground, alpha);
  const isOnPicture = () => alpha >= 0.1 && hasPicture(element, ground, colour);
  return (isSeen || isOutlined(style, ground, opacity) || isOnPicture()) && isThere(text, element, style);
}
/** Whether a text is drawn by its outline. */
const isOutlined = (style: CSSStyleDeclaration, ground: Colour, opacity: number): boolean =>
  parseFloat(style.webkitTextStrokeWidth) >= 0.5 &&
  !isLike(above(colourOf(style.webkitTextStrokeColor), ground), ground, opacity);
/**
 * Whether a picture shows through an element's text: its own, or that of an element that the text
 * flows in.
 */
function isPainted(element: Element, ground: Colour): boolean {
  for (let e: Element | null = element; e && dom.tagOf(e) !== "body"; e = dom.parentElement(e)) {
    const style = styleOf(e);
    if (style.webkitBackgroundClip === "text" && isUnlike(style.backgroundImage, ground, ground)) return true;
    if (isPlaced(style)) return false;
  }
  return false;
}
interface Surroundings {
  ground: Colour;
  opacity: number;
}
/** The least height of legible text, in pixels. */
const smallest = 4;

/**
 * Whether a text of the colour of its ground may stand on a picture: around it, or beside it and
 * behind it.
 */
function hasPicture(element: Element, ground: Colour, colour: Colour): boolean {
  const { left, right, top, bottom } = boxOf(element);
  const isBehind = (other: Element): boolean => {
    const box = boxOf(other);
    const [x, y] = [(left + right) / 2, (top + bottom) / 2];
    const isAround = box.left <= x && x <= box.right && box.top <= y && y <= box.bottom;
    return other !== element && isAround && isPicture(other, ground, colour);
  };
  let isOpen = true;
  for (let e: Element | null = element, up = 0; e; e = dom.parentElement(e)) {
    const { backgroundImage, backgroundColor } = styleOf(e);
    if (isUnlike(backgroundImage, ground, colour)) return true;
    if (isOpen && isPseudoPicture(e, boxOf(element), ground, colour)) return true;
    isOpen &&= colourOf(backgroundColor)[3] < 1;
    if (up++ < 8 && Array.from(dom.elementsIn(e)).slice(0, 20).some(isBehind)) return true;
  }
  return false;
}
/** Whether what an element has before or after it is a ground of all of a text. */
const isPseudoPicture = (e: Element, text: DOMRect, ground: Colour, colour: Colour): boolean =>
  ["::before", "::after"].some((name) => {
    const style = styleOf(e, name);
    if (/^(none|normal)$/.test(style.content) || style.display === "none" || !isPlaced(style)) return false;
    if (+style.opacity < 0.3 || style.visibility !== "visible" || style.clipPath !== "none") return false;
    if (style.transform !== "none" || styleOf(e).position === "static") return false;
    const from = boxOf(e);
    const covers = (begin: "left" | "top", size: "width" | "height") => {
      const before = text[begin] - from[begin] - parseFloat(style[begin]);
      return before >= 0 && before + text[size] <= parseFloat(style[size]);
    };
    const own = colourOf(style.backgroundColor);
    const isOther = own[3] > 0.3 && !isLike(above(own, ground), colour);
    return (
      covers("left", "width") && covers("top", "height") && (isOther || isUnlike(style.backgroundImage, ground, colour))
    );
  });
const pictures = ["img", "video", "canvas", "svg", "picture", "iframe"];
function isPicture(element: Element, ground: Colour, colour: Colour): boolean {
  if (pictures.includes(dom.tagOf(element))) return true;
  const { position, backgroundImage, backgroundColor } = styleOf(element);
  const own = colourOf(backgroundColor);
  const isGround = isUnlike(backgroundImage, ground, colour) || (own[3] > 0.3 && !isLike(above(own, ground), colour));
  return position !== "static" && (isGround || dom.all(element, pictures.join()).length > 0);
}

/** Whether a text of a drawing is large enough to be read, and not far away from the drawing. */
export function isDrawn(text: Element, drawing: Element): boolean {
  const { left, top, width, height } = boxOf(text);
  const frame = boxOf(drawing);
  const isNear = Math.abs(left - frame.left) < 4000 && Math.abs(top - frame.top) < 4000;
  const isOpen = frame.width > least || styleOf(drawing).overflowX === "visible";
  return isNear && isOpen && width > least && height >= smallest;
}

/** Whether a label or a field is where a person sees it. */
export function isSeen(element: Element): boolean {
  const { right, bottom, width, height } = boxOf(element);
  const style = styleOf(element);
  if (width <= least || height <= least || +style.opacity < 0.1 || style.visibility !== "visible") return false;
  return (
    dom.isVisible(element, { opacityProperty: true }) && !isBefore(element, right, bottom, isPlaced(style) ? 0 : 4000)
  );
}
