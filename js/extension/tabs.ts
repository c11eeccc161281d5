/**
 * What the worker knows of the browser's tabs: what of a tab's title and address may leave the
 * browser, the tab's name and key at a gateway, and when to look at the tabs again.
 */
import type { Target } from "./messages.ts";
import type { TabName } from "./transport.ts";

/** The longest title and address of a tab that leave the browser, in UTF-16 code units. */
export const maxTitle = 1024;
export const maxURL = 8192;

/** The origin of an http or https URL; "" of any other. */
export const webOrigin = (url: string) => (/^https?:/.test(url) ? new URL(url).origin : "");

export const shortTitle = (title = "", most = maxTitle) => title.slice(0, most);
/** A tab's address if it is of the origin, and that of the origin itself if not. */
export const urlWithin = (origin: string, url: string) =>
  url.startsWith(origin + "/") && url.length <= maxURL ? url : origin + "/";
export const withoutQuery = (url: string) => url.replace(/[?#].*/s, "");

/**
 * The names of tabs and windows in this run of the browser: other runs give the same numbers to
 * other tabs.
 */
export async function tabNames(): Promise<TabName> {
  let { run } = await chrome.storage.session.get("run");
  if (typeof run !== "string") await chrome.storage.session.set({ run: (run = crypto.randomUUID()) });
  return (id) => `${run}-${id}`;
}

/**
 * The keys by which a gateway knows the browser's tabs by CDP, if one is attached to it: what the
 * extension shows of a tab is then in the same tab at the gateway. The gateway says them in the
 * extension's world of each document (bridge/pages/cdp/tabs.go), where no script of a page is. They
 * end with the browser.
 */
export class Targets {
  /** Tab to key. The browser's session storage has the same, for the next worker. */
  private readonly known = new Map<number, string>();
  /** Resolves when what an earlier worker has learned is known. */
  readonly ready: Promise<void>;

  /** `changed` is called with a tab whose key is new. */
  constructor(changed: (tab: number) => void) {
    chrome.runtime.onMessage.addListener((message: Partial<Target>, { id, tab, frameId }) => {
      const key = message?.target;
      if (id !== chrome.runtime.id || frameId !== 0 || tab?.id === undefined) return;
      if (typeof key !== "string" || !/^cdp:\w{1,60}$/.test(key) || this.known.get(tab.id) === key) return;
      this.known.set(tab.id, key);
      void chrome.storage.session.set({ targets: [...this.known] });
      changed(tab.id);
    });
    this.ready = chrome.storage.session.get("targets").then(({ targets: before }) => {
      if (!Array.isArray(before)) return;
      for (const [tab, key] of before as [number, string][]) if (!this.known.has(tab)) this.known.set(tab, key);
    });
  }

  of(tab: number): string | undefined {
    return this.known.get(tab);
  }
}

interface BrowserEvent {
  addListener(listener: () => void): void;
  removeListener(listener: () => void): void;
}

/**
 * Who keeps something in line with the browser's tabs. The browser's events lead to an update, and
 * wake a suspended worker, which updates when it starts.
 */
export abstract class TabFollower {
  /** Whether the browser's events are listened to. */
  protected on = false;
  /** Whether an update waits: what happens until it begins is seen by it. */
  private due = false;
  /** The last update and its pause. The next one waits for both. */
  private last: Promise<unknown> = Promise.resolve();

  /** The pause after an update is in ms: pages may change their titles many times a second. */
  constructor(private readonly pause: number) {}

  /** The browser's events after which something may be different. */
  protected abstract causes(): BrowserEvent[];

  /**
   * Looks at the browser, and acts on what is different. It may reject: a tab has gone, and another
   * event follows.
   */
  protected abstract update(): Promise<void>;

  follow(on: boolean): void {
    if (on === this.on) return;
    this.on = on;
    for (const event of this.causes()) event[on ? "addListener" : "removeListener"](this.updateSoon);
  }

  readonly updateSoon = (): void => {
    if (this.due) return;
    this.due = true;
    this.last = this.last.then(async () => {
      this.due = false;
      await this.update().catch(() => {});
      await new Promise((done) => setTimeout(done, this.pause));
    });
  };
}
