/**
 * A person points at a part of the page in a tab, as the worker sees it: picker.ts runs there from
 * the person's click in the popup until a click on a part, or Escape. Its element is marked by a
 * style of the user's, which adds nothing to the document. What is picked is no agent's before the
 * person has looked at it and shared it.
 */
import type { Part } from "../shown/part.ts";
import { fromPicker } from "./messages.ts";
import { ruleFrom } from "./picked.ts";
import { onClosed, servePorts } from "./ports.ts";
import { webOrigin } from "./tabs.ts";

/** What is picked, and not shared yet. */
export interface Pending {
  readonly tab: number;
  readonly origin: string;
  readonly part: Part;
  /** Its name in previews, which no other pick has and no part that is shared. */
  readonly name: string;
}

const isPlace = /^[\w\s>:().\\-]{1,4000}$/;
const style = "{outline:3px solid #06c!important;outline-offset:-3px!important;cursor:crosshair!important}";

export class Picking {
  /** The last pick, until the person shares it, drops it, or points again. */
  pending: Pending | undefined;
  /** The tab in which a person points, and its picker. */
  private tab: number | undefined;
  private picker: chrome.runtime.Port | undefined;
  /** The style that marks an element in that tab, and the last change of it in the browser. */
  private mark: string | undefined;
  private marks: Promise<unknown> = Promise.resolve();

  constructor(private readonly changed: (picked?: Pending) => void) {
    servePorts(fromPicker, (port, tab, origin = "") => {
      if (tab !== this.tab || !webOrigin(origin)) return false;
      this.picker?.disconnect();
      this.picker = port;
      port.onMessage.addListener((message) => port === this.picker && this.receive(origin, message));
      onClosed(port, () => port === this.picker && this.close());
      return true;
    });
  }

  async begin(tab: number): Promise<void> {
    this.close();
    this.pending = undefined;
    this.tab = tab;
    this.changed();
    await chrome.scripting.executeScript({ target: { tabId: tab }, files: ["pick.js"], injectImmediately: true });
  }

  /** Forgets what is picked, and ends what goes on. */
  drop(): void {
    this.pending = undefined;
    this.close();
    this.changed();
  }

  private receive(origin: string, message: unknown): void {
    const { place, rule } = message as { place?: unknown; rule?: unknown };
    if (typeof place === "string") return this.show(isPlace.test(place) ? place + style : undefined);
    const tab = this.tab!;
    const part = ruleFrom(rule);
    this.close();
    this.pending = part && { tab, origin, part, name: `(${crypto.randomUUID()})` };
    this.changed(this.pending);
  }

  /** Marks what is below the pointer, one after the other. */
  private show(css: string | undefined): void {
    const { tab, mark } = this;
    if (tab === undefined || css === mark) return;
    this.mark = css;
    const of = (css: string) => ({ target: { tabId: tab }, css, origin: "USER" as const });
    const paint = async () => {
      if (css) await chrome.scripting.insertCSS(of(css));
      if (mark) await chrome.scripting.removeCSS(of(mark));
    };
    this.marks = this.marks.then(paint).catch(() => {}); // the document has gone
  }

  private close(): void {
    const { picker } = this;
    this.show(undefined);
    this.tab = this.picker = undefined;
    picker?.disconnect();
  }
}
