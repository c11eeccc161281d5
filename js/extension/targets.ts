/**
 * The keys by which a gateway knows the browser's tabs by CDP, if one is attached to it: what the extension shows of a
 * tab is then in the same tab at the gateway. The gateway says them in the extension's world of each document
 * (bridge/pages/cdp/tabs.go), where no script of a page is. They end with the browser.
 */
import type { Target } from "./messages.ts";

const kept = "targets";

export class Targets {
  private readonly known = new Map<number, string>();
  /** Settles when what an earlier worker has learned is known. */
  readonly ready: Promise<void>;

  /** `changed` is called with a tab whose key is new. */
  constructor(changed: (tab: number) => void) {
    chrome.runtime.onMessage.addListener((message: Partial<Target>, { id, tab, frameId }) => {
      const key = message?.target;
      if (id !== chrome.runtime.id || frameId !== 0 || tab?.id === undefined) return;
      if (typeof key !== "string" || !/^cdp:\w{1,60}$/.test(key) || this.known.get(tab.id) === key) return;
      this.known.set(tab.id, key);
      void chrome.storage.session.set({ [kept]: [...this.known] });
      changed(tab.id);
    });
    this.ready = chrome.storage.session.get(kept).then(({ [kept]: before }) => {
      if (!Array.isArray(before)) return;
      for (const [tab, key] of before as [number, string][]) if (!this.known.has(tab)) this.known.set(tab, key);
    });
  }

  of(tab: number): string | undefined {
    return this.known.get(tab);
  }
}
