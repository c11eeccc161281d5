/**
 * The picker: a key opens it over the page, a click picks the element under the pointer, and a box
 * takes the developer's words about it.
 *
 * While it is open, the page gets no event of a person. The listeners are on the window from the
 * beginning: those that the page adds there later come after them. The picker's own events end
 * there too, so it has no other listeners.
 */
import { componentOf } from "./component.ts";

/** Takes what is picked at once, since it may be gone later. Returns what takes the words. */
type Take = (element: Element) => (words: string) => void;
type Tree = Document | ShadowRoot;
type Act = (event: KeyboardEvent & PointerEvent) => void;

const types = `${"move down up over out enter leave".replace(/\w+/g, "pointer$& mouse$&")} click
  dblclick auxclick contextmenu dragstart touchstart touchend keydown keypress keyup copy cut paste
  beforeinput input ${"start update end".replace(/\w+/g, "composition$&")} focus blur focusin focusout`;

/** No style of the page counts: `:host` with !important wins over all of them. */
const css = `:host { all: initial !important; display: block !important; position: fixed !important;
  inset: 0 !important; cursor: crosshair !important; color-scheme: light dark !important;
  font: 14px/1.4 system-ui, sans-serif !important }
div { position: fixed; outline: 2px solid #06c }
.mark, .name { pointer-events: none; background: #06c2 }
.name { padding: 0 6px; background: #06c; color: #fff }
.box { width: 320px; height: 130px; padding: 12px; border-radius: 8px; cursor: auto;
  background: Canvas; color: CanvasText; box-shadow: 0 4px 16px #0006 }
textarea { display: block; width: 100%; height: 80px; box-sizing: border-box; font: inherit }`;
const tag = "pagewire-picker";
/** Of the box, with a distance from what is beside it. */
const [width, height] = [352, 162];
/** The most characters of the words. */
const longest = 4000;

/** A page may name another key in `pagewirePickKey`. */
function opens(event: KeyboardEvent): boolean {
  const { pagewirePickKey = "Alt+Shift+P" } = globalThis as { pagewirePickKey?: string };
  const wanted = pagewirePickKey.toLowerCase().split("+");
  const modifiers = ["alt", "ctrl", "meta", "shift"] as const;
  // With Alt or Shift a key makes another character.
  const keys = [event.key, event.code.replace(/^(Key|Digit)/, "")];
  return (
    modifiers.every((name) => event[`${name}Key`] === wanted.includes(name)) &&
    keys.some((key) => key.toLowerCase() === wanted.at(-1))
  );
}

/** Installs the picker. */
export function picker(take: Take): void {
  let open: { host: Element; act: Act } | undefined;
  /** The last key that was not the page's: nor is its keyup. */
  let held = "";
  const act: Act = (event) => {
    const { type, code } = event;
    const isOpen = open?.host.isConnected;
    const begins = !isOpen && type === "keydown" && opens(event);
    // Drivers send a keypress of a key whose keydown was prevented: Enter would click what has the focus again.
    const isHeld = /^key(press|up)$/.test(type) && code === held;
    if (!event.isTrusted || !(isOpen || begins || isHeld)) return;
    event.stopImmediatePropagation();
    if (type === "keypress" && isHeld && !isOpen) event.preventDefault();
    if (/^key(down|up)$/.test(type)) held = type === "keydown" ? code : "";
    if (isOpen) open!.act(event);
    if (begins) event.preventDefault();
    if (begins) open = overlay(take);
  };
  for (const type of types.match(/\w+/g)!) addEventListener(type, act as EventListener, true);
}

function overlay(take: Take): { host: Element; act: Act } {
  const host = document.createElement(tag);
  const root = host.attachShadow({ mode: "closed" });
  // A policy of the page may forbid style elements and attributes.
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(css);
  root.adoptedStyleSheets = [sheet];
  const make = (of: string, className: string, to: Node = root): HTMLElement =>
    to.appendChild(Object.assign(document.createElement(of), { className }));
  const [mark, name] = [make("div", "mark"), make("div", "name")];

  const focused = deepest(document.activeElement);
  let at: Element = document.documentElement;
  /** The elements to which ArrowDown leads back. */
  let below: Element[] = [];
  let pointer = "";
  let box: HTMLElement | undefined;
  let words: HTMLTextAreaElement;
  let send: (words: string) => void;

  const aim = (to: Element | null | undefined): void => {
    if (to) at = to;
    name.textContent = `${componentOf(at)?.name ?? ""} <${at.localName}>`.trim();
  };
  const draw = (): void => {
    const { left, top, width, height } = at.getBoundingClientRect();
    place(mark, { left, top, width, height });
    place(name, { left: Math.max(left, 0), top: Math.max(top - 22, 0) });
    if (host.isConnected) requestAnimationFrame(draw);
  };
  const close = (): void => {
    focused?.focus({ preventScroll: true }); // before the end, so that the page does not notice
    host.remove();
  };
  const pick = (): void => {
    send = take(at);
    box = make("div", "box");
    const label = make("label", "", box);
    label.textContent = box.ariaLabel = `About ${name.textContent}`;
    Object.assign(box, { role: "dialog", ariaModal: "true" });
    name.remove();
    words = make("textarea", "", label) as HTMLTextAreaElement;
    words.maxLength = longest;
    make("span", "", box).textContent = "Enter sends, Escape cancels";
    const { left, top, bottom } = at.getBoundingClientRect();
    const y = bottom + height < innerHeight ? bottom + 8 : top - height;
    const within = (n: number, most: number) => Math.max(8, Math.min(n, most));
    place(box, { left: within(left, innerWidth - width), top: within(y, innerHeight - height) });
    words.focus({ preventScroll: true });
  };

  const act: Act = (event) => {
    const { type, key, clientX: x, clientY: y } = event;
    const isOurs = /^(Escape|Tab)$/.test(key) || (key === "Enter" && !event.shiftKey);
    const pressed = type === "keydown" && !event.isComposing ? key : "";
    if (box) {
      const isOutside = x !== undefined && !box.contains(root.elementFromPoint(x, y));
      // The focus stays in the box.
      if ((isOurs && !event.isComposing) || isOutside) event.preventDefault();
      if (isOurs && pressed === "Enter") send(words.value);
      if (isOurs && pressed && key !== "Tab") close();
      return;
    }
    if (event.ctrlKey || event.metaKey || /^F\d/.test(pressed)) return; // the browser's
    if (!type.startsWith("touch")) event.preventDefault();
    if (/^pointer(move|down)$/.test(type) && pointer !== (pointer = `${x} ${y}`)) {
      below = [];
      aim(elementAt(x, y));
    }
    const around = at.parentElement ?? (at.getRootNode() as Partial<ShadowRoot>).host;
    if (pressed === "ArrowUp" && around) {
      below.push(at);
      aim(around);
    }
    if (pressed === "ArrowDown") aim(below.pop() ?? (at.shadowRoot ?? at).firstElementChild);
    if (pressed === "Escape") close();
    if (type === "click" || pressed === "Enter") pick();
  };

  host.popover = "manual";
  // Within what is in front, since a modal dialog makes all else inert.
  const front = [...document.querySelectorAll("dialog:modal, :popover-open")].at(-1);
  (front ?? document.documentElement).append(host);
  host.showPopover();
  const hovered = [...document.querySelectorAll(":hover")].filter((of) => of !== host);
  aim(hovered.at(-1) ?? focused);
  draw();
  return { host, act };
}

function place({ style }: HTMLElement, at: { [name: string]: number }): void {
  for (const [name, pixels] of Object.entries(at)) style.setProperty(name, `${pixels}px`);
}

/** The focused element, in open shadow trees too. */
const deepest = (of: Element | null): HTMLElement | null =>
  of?.shadowRoot?.activeElement ? deepest(of.shadowRoot.activeElement) : (of as HTMLElement | null);

/** The element below the picker, in open shadow trees too. Of a frame it is the frame. */
function elementAt(x: number, y: number, root: Tree = document): Element | undefined {
  const all = root.elementsFromPoint(x, y).filter((of) => of.localName !== tag);
  const found = all.find((of) => of.getRootNode() === root);
  return (found?.shadowRoot && elementAt(x, y, found.shadowRoot)) || found;
}
