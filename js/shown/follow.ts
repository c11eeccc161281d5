/**
 * Follows what a page shows, while somebody watches it. A change only marks what has to be read
 * again. The next look reads it, at most twice a second, and tells if the text is another one.
 *
 * Clocks, prices and ads change all the time. So an element that changes often by itself is
 * restless: a text that differs from its former texts in nothing but digits is no news, and is told
 * once a minute.
 *
 * Not noticed at once: what stylesheets change without a change of the page. A whole look finds it
 * once in a while.
 */
import { type Field, remember } from "../share/secrets.ts";
import { asElement, attribute, elementsIn, isConnected, parentElement, tagOf, typeOf } from "./dom.ts";
import { elementOf, gone, lookOf, type Part } from "./part.ts";
import { brief } from "./roles.ts";
import { type Look, Reader, type Sight } from "./read.ts";

/**
 * Milliseconds: between looks, of a slice of one, between whole looks, and until what is quiet is
 * told.
 */
const ms = { look: 500, slice: 8, whole: 10_000, quiet: 60_000 };
/** Looks take one of so many milliseconds at most, and whole looks. */
const share = { look: 10, whole: 150 };
/**
 * An element is restless after so many changes in this time, but for those soon after an act of the
 * user.
 */
const restless = { changes: 4, in: 30_000, after: 2000 };
/**
 * Records of one turn that are looked at singly, characters of a short text, and texts that are
 * remembered.
 */
const most = { records: 2000, text: 150, texts: 16 };

/** The time between looks. */
export interface Clock {
  now(): number;
  wait(ms: number): Promise<void>;
}

export interface Watch {
  /** The part that is watched. Without it the whole page is. */
  part?: Part | undefined;
  changed(): void;
  /** The last look that somebody knows of, and when that was. */
  told?: Look | undefined;
  at?: number;
  /** A text that is no news is told in a minute. */
  isLate?: boolean;
}

/**
 * Attributes that may show or hide what is within, or make it another thing; and others that
 * matter.
 */
const shaking = (
  "class style hidden open popover role href disabled inert contenteditable data-resource-private data-state data-open " +
  "data-active data-selected data-expanded data-collapsed data-hidden data-visible aria-hidden aria-expanded aria-selected aria-current"
).split(" ");
const attributes =
  "type aria-label aria-checked aria-pressed aria-disabled aria-valuenow aria-valuetext aria-level alt title " +
  "placeholder value checked selected autocomplete label";
const changes = { subtree: true, childList: true, characterData: true, attributeOldValue: true };
const watched = { ...changes, attributes: true };
const known = new Set([...shaking, ...attributes.split(" ")]);
const types = { subtree: true, attributeFilter: ["type"], attributeOldValue: true };
/**
 * Each frame of an animation changes a style; these parts of it can hide a text. Of lengths only
 * the great ones do.
 */
const hiding = new RegExp(
  "(display|visibility|color|font|clip|mask|position|zoom)[^;]*|opacity:(0?(\\.0\\d*)?(?![.\\d])|\\d%|[a-z][^;]*)|" +
    "(height|width):[0-3]?(\\.\\d*)?(?![.\\d])|scale\\w*[:(][0.,]*(?![.\\d])|opacity\\(0(?!\\.)|blur\\(\\d\\d",
  "g",
);
function hides(style: string | null): string {
  const all = style?.toLowerCase().replace(/\s+/g, "") ?? "";
  return `${all.match(hiding)} ${/(?<![.\d])\d{4}/.test(all)}`;
}
const events = "input change reset toggle slotchange transitionend animationend load play pause";

/** Properties whose transitions show and hide nothing. */
const colouring = /color|shadow|fill|stroke|radius/;

export class Follower {
  readonly #reader: Reader;
  readonly #document: Document;
  readonly #clock: Clock;
  /** Those who are told of changes. Each counts as a user. */
  readonly #watches = new Set<Watch>();
  readonly #channel = new MessageChannel();
  /** Observes what was met, while there are users. */
  readonly #observer = new MutationObserver((records) => this.#note(records));
  /** Remembers passwords that a button shows, and stays when nobody watches any more. */
  readonly #types = new MutationObserver((records) => {
    for (const { target, oldValue } of records) if (/^password$/i.test(oldValue ?? "")) remember(target as Field);
  });
  /** Those who watch, and those who read now. */
  #users = 0;
  /** Documents and shadow trees that are followed; none without users. */
  #met = new WeakSet<Node>();
  /** Its signal removes the listeners of the present users. */
  #listeners: AbortController | undefined;
  /** Looks wait for each other: the walks share the reader's state. */
  #busy: Promise<unknown> = Promise.resolve();
  /** Walks that wait for a message of the channel: one for each message on its way. */
  #turns: (() => void)[] = [];
  /** Whether a look at all that is watched is due. */
  #isDue = false;
  /** Whether the last look was a whole one, and whether the next is due for that. */
  #isWhole = false;
  #isWholeDue = false;
  /** When the next look may be, and when the next has to be a whole one. */
  #next = 0;
  #nextWhole = 0;
  /** When the user has acted last. */
  #acted = -restless.after;
  /**
   * Element with a short text → when it changed by itself lately, and the texts that it had,
   * without their digits.
   */
  #beats = new WeakMap<Element, { times: number[]; texts: Set<string> }>();

  constructor(document: Document, clock: Clock, except?: string) {
    this.#document = document;
    this.#clock = clock;
    this.#reader = new Reader(document, (root) => this.#meet(root), except);
    this.#channel.port1.onmessage = () => this.#turns.shift()!();
  }

  /**
   * The text of now; undefined if the part is not in the page. The page is followed while it is
   * being read, and afterwards only for those who watch.
   */
  async read(watch: Watch, sight: Omit<Sight, "part" | "rows"> = {}): Promise<string | undefined> {
    this.#begin();
    try {
      const look = await this.#look(watch, sight);
      // What changes from now on until somebody watches is told then.
      if (!sight.from && !sight.links && !this.#watches.has(watch)) watch.told = look;
      return look === gone ? undefined : look.text + look.note;
    } finally {
      this.#end();
    }
  }

  /** The element of a watch; null if it is not there. */
  #elementOf({ part }: Watch): Element | null | undefined {
    return part && (elementOf(this.#document, part) ?? null);
  }

  async watch(watch: Watch): Promise<void> {
    if (this.#watches.has(watch)) return;
    this.#begin();
    this.#watches.add(watch);
    watch.at = this.#clock.now();
    if (watch.told) return this.#soon();
    // If a page makes a look fail, the next one tells.
    watch.told = await this.#look(watch).catch(() => undefined);
    if (!watch.told) void this.#lookWhole();
  }
  unwatch(watch: Watch): void {
    Object.assign(watch, { told: undefined, isLate: false });
    if (this.#watches.delete(watch)) this.#end();
  }
  #unwatchAll(): void {
    for (const watch of this.#watches) this.unwatch(watch);
  }
  stop(): void {
    this.#unwatchAll();
    this.#types.disconnect();
  }

  #begin(): void {
    if (this.#users++) return;
    this.#listeners = new AbortController();
    this.#meet(this.#document);
    const { signal } = this.#listeners;
    for (const type of ["resize", "hashchange"]) addEventListener(type, () => this.#all(), { signal });
    // Who watched a page that goes into the back/forward cache does not when it comes back.
    addEventListener("pagehide", ({ isTrusted }) => isTrusted && this.#unwatchAll(), { signal });
  }
  #end(): void {
    if (--this.#users) return;
    this.#listeners?.abort();
    this.#observer.disconnect();
    this.#met = new WeakSet();
    this.#reader.forget();
    this.#reader.restless.clear();
    this.#nextWhole = 0;
  }

  /** Follows a document or a shadow tree, from now on. */
  #meet(root: Document | ShadowRoot | null): void {
    if (!root || this.#met.has(root)) return;
    this.#met.add(root);
    this.#observer.observe(root, watched);
    this.#types.observe(root, types);
    this.#listen(root);
  }
  #onEvent = ({ type, target, propertyName }: Event & { propertyName?: string }) => {
    const element = asElement(target as Node | null);
    if (!element || colouring.test(propertyName ?? "")) return;
    this.#reader.clock++;
    // Rules like `:checked ~ .panel` show anything.
    if (/^(load (link|style)|change input)$/.test(`${type} ${tagOf(element)}`)) this.#reader.forget();
    else if (/^(transition|animation)end$/.test(type)) this.#reader.shake(element);
    else this.#reader.stale(element);
    this.#soon();
  };
  #onAct = ({ isTrusted }: Event) => {
    if (isTrusted) this.#acted = this.#clock.now();
  };
  #listen(root: Document | ShadowRoot): void {
    const options = { capture: true, passive: true, signal: this.#listeners!.signal };
    const listen = EventTarget.prototype.addEventListener;
    for (const type of events.split(" ")) listen.call(root, type, this.#onEvent, options);
    if (typeOf(root) === 9)
      for (const type of ["pointerdown", "keydown"]) listen.call(root, type, this.#onAct, options);
  }

  #all(): void {
    this.#reader.clock++;
    this.#reader.forget();
    this.#soon();
  }

  #note(records: MutationRecord[]): void {
    this.#reader.clock++;
    const telling = records.filter(({ attributeName }) => !attributeName || known.has(attributeName));
    if (telling.length > most.records) return this.#all();
    let isElse = telling.length < records.length;
    for (const record of telling) {
      // document.open has removed the listeners.
      if (typeOf(record.target) === 9) this.#listen(record.target as Document);
      if (!this.#mark(record)) {
        isElse = true;
        continue;
      }
      this.#count(record);
      this.#soon();
    }
    // Another attribute, or a style that moves something, may show or hide it: the next whole look sees that.
    if (!isElse || !this.#watches.size) return;
    this.#isWhole = false;
    void this.#lookWhole();
  }
  /** Marks what a change makes stale. Returns false if it cannot change a text. */
  #mark({ type, target, attributeName, oldValue, addedNodes }: MutationRecord): boolean {
    // What has been moved is elsewhere another thing.
    for (const element of Array.from(addedNodes, asElement)) if (element) this.#reader.shake(element);
    if (type !== "attributes" || !shaking.includes(attributeName!)) {
      this.#reader.stale(target);
      return true;
    }
    const element = target as Element;
    const value = attribute(element, attributeName!);
    if (attributeName === "style" && hides(oldValue) === hides(value)) return false;
    if (oldValue && oldValue === value) return false;
    this.#reader.shake(element);
    // Rules like `.open + .panel` show what is beside it.
    const siblings = elementsIn(parentElement(element) ?? element);
    if (siblings.length <= 32) for (const sibling of siblings) this.#reader.nudge(sibling);
    return true;
  }

  /** Counts the changes of an element with a short text. */
  #count({ type, target, attributeName }: MutationRecord): void {
    const element = type === "characterData" ? parentElement(target) : asElement(target);
    const now = this.#clock.now();
    if (!element || now - this.#acted < restless.after || elementsIn(element).length > 3) return;
    if (type === "attributes" && !shaking.includes(attributeName!)) return;
    const text = brief(element).replace(/\d+/g, "#");
    const { restless: elements } = this.#reader;
    // What has grown is read, and no clock.
    if (text.length > most.text) {
      if (elements.delete(element)) this.#reader.stale(element);
      return;
    }
    const { times = [], texts = new Set<string>() } = this.#beats.get(element) ?? {};
    if (elements.has(element) && !texts.has(text)) this.#reader.news++;
    if (texts.add(text).size > most.texts) texts.delete(texts.values().next().value!);
    const lately = [...times.filter((at) => now - at < restless.in), now].slice(-restless.changes);
    this.#beats.set(element, { times: lately, texts });
    if (lately.length < restless.changes || elements.has(element)) return;
    elements.add(element);
    this.#reader.stale(element);
  }
  /** Elements that have not changed for a time are not restless any more. */
  #calm(): void {
    const now = this.#clock.now();
    for (const element of this.#reader.restless) {
      const last = this.#beats.get(element)!.times.at(-1)!;
      if (isConnected(element) && now - last < restless.in) continue;
      this.#reader.restless.delete(element);
      this.#reader.clock++;
      this.#reader.stale(element);
    }
  }

  /** Has all watched parts looked at, as soon as it may be. */
  #soon(): void {
    if (this.#isDue || !this.#watches.size) return;
    this.#isDue = true;
    const left = this.#next - this.#clock.now();
    void (left > 0 ? this.#clock.wait(left) : this.#turn()).then(() => this.#lookAtAll());
  }
  async #lookAtAll(): Promise<void> {
    this.#isDue = false;
    for (const watch of this.#watches) {
      const look = await this.#look(watch).catch(() => undefined);
      if (!look || !this.#watches.has(watch)) continue;
      const { told = gone, at = 0 } = watch;
      const now = this.#clock.now();
      const isOther = look.text !== told.text;
      const isNews = isOther && (watch.part || look.loud !== told.loud);
      if (isNews || (isOther && now - at >= ms.quiet)) {
        Object.assign(watch, { told: look, at: now, isLate: false });
        watch.changed();
        continue;
      }
      if (watch.told) told.loud = look.loud; // a text that nobody sees may have been news
      if (isOther && !watch.isLate) {
        watch.isLate = true;
        void this.#clock.wait(at + ms.quiet - now).then(() => this.#soon());
      }
    }
    void this.#lookWhole();
  }

  /**
   * What stylesheets have changed by the last changes of the page is seen in the next whole look.
   */
  async #lookWhole(): Promise<void> {
    if (this.#isWhole || this.#isWholeDue) return;
    this.#isWholeDue = true;
    await this.#clock.wait(this.#nextWhole - this.#clock.now());
    this.#isWholeDue = false;
    this.#soon();
  }

  /** A message, since a hidden tab's timers run once a second, or once a minute. */
  #turn(): Promise<void> {
    return new Promise((done) => {
      this.#turns.push(done);
      this.#channel.port2.postMessage(0);
    });
  }
  #look(watch: Watch, sight: Omit<Sight, "part"> = {}): Promise<Look> {
    const look = this.#busy.then(() => this.#walk(watch, sight));
    this.#busy = look.catch(() => {});
    return look;
  }
  /**
   * Looks in slices. If the page changes meanwhile, it looks again, in longer slices: in the end
   * what changes all the time is made anew in one go.
   */
  async #walk(watch: Watch, sight: Omit<Sight, "part">): Promise<Look> {
    const reader = this.#reader;
    this.#note(this.#observer.takeRecords());
    const isWhole = this.#clock.now() >= this.#nextWhole;
    this.#isWhole = false;
    if (isWhole) {
      this.#calm();
      reader.forget();
    }
    let spent = 0;
    try {
      for (let round = 1; ; round++) {
        const before = reader.clock;
        const element = this.#elementOf(watch);
        const walk = reader.look({ ...sight, part: element, rows: watch.part?.as === "table" });
        let step: IteratorResult<void, Look>;
        for (;;) {
          const from = performance.now();
          reader.deadline = from + ms.slice * 2 ** Math.max(0, round - 2);
          step = walk.next();
          spent += performance.now() - from;
          if (step.done) break;
          await this.#turn();
        }
        if (reader.clock !== before && round < 8) continue;
        this.#isWhole = isWhole;
        if (element === null) return gone;
        return watch.part ? lookOf(watch.part, element!, step.value, reader, sight) : step.value;
      }
    } finally {
      const now = this.#clock.now();
      this.#next = now + Math.max(ms.look, spent * (share.look - 1));
      if (isWhole) this.#nextWhole = now + Math.max(ms.whole, spent * share.whole);
    }
  }
}
