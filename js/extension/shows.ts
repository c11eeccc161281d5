/**
 * The tabs of which agents may have something that they show: of the sites that the user has
 * granted, and with the user's parts.
 */
import { fromReader, type PartRef } from "./messages.ts";
import type { Picked } from "./picked.ts";
import { servePorts } from "./ports.ts";
import { ShownTab, type User } from "./showntab.ts";
import { TabFollower, webOrigin } from "./tabs.ts";

const maxTabs = 200;

/** `changed` is called when there are other tabs, or a document is loaded in one. */
export class Shows extends TabFollower {
  /** By the browser's number, at most `maxTabs`. */
  private readonly tabs = new Map<number, ShownTab>();
  /** The tab that the user looks at before granting anything. No gateway has it. */
  private readonly previews = new Map<number, ShownTab>();
  /** What is granted now: whole sites, by origin, and parts. */
  private whole: readonly string[] = [];
  private picked: Pick<Picked, "at"> | undefined;

  constructor(
    private readonly user: User,
    private readonly changed: () => void,
  ) {
    super(100);
    servePorts(fromReader, (port, tab, origin) =>
      [this.tabs, this.previews].some((tabs) => tabs.get(tab)?.accept(port, origin)),
    );
  }

  list(): ShownTab[] {
    return [...this.tabs.values()].filter(({ admitted }) => admitted);
  }

  /**
   * Serves the tabs of these sites, and the user's parts of others, from now on, and at once
   * nothing else.
   */
  allow(whole: readonly string[], picked?: Pick<Picked, "at" | "origins">): void {
    this.whole = whole;
    this.picked = picked;
    for (const [id, one] of this.tabs)
      if (this.isFor(one.origin, one.url)) this.share(one);
      else this.remove(id, one);
    const was = this.on;
    this.follow(whole.length > 0 || !!picked?.origins().length);
    // Also if the sites are the same: what is for agents in a tab may be more than before.
    if (was || this.on) this.updateSoon();
  }

  protected causes() {
    const { onUpdated, onActivated, onRemoved } = chrome.tabs;
    return [onUpdated, onActivated, onRemoved];
  }

  override follow(on: boolean): void {
    if (on !== this.on) chrome.tabs.onUpdated[on ? "addListener" : "removeListener"](this.onUpdated);
    super.follow(on);
  }

  /** Whether anything of a page is for agents. */
  private isFor(origin: string, url: string): boolean {
    return this.whole.includes(origin) || Object.keys(this.picked?.at(origin, url) ?? {}).length > 0;
  }

  private share(one: ShownTab): void {
    one.share(this.whole.includes(one.origin), this.picked?.at(one.origin, one.url) ?? {});
  }

  /** What agents would read of a tab now, or of a part. `text` is missing if it cannot be read. */
  async preview(id: number, ref: PartRef = {}): Promise<{ origin: string; text?: string }> {
    const tab = await chrome.tabs.get(id);
    const origin = webOrigin(tab.url ?? "");
    if (!origin) return { origin };
    let one = this.tabs.get(id);
    if (!one?.admitted || one.origin !== origin) {
      one = new ShownTab(this.user, id, origin, tab);
      this.previews.get(id)?.close();
      this.previews.set(id, one);
    }
    const text = await one.text(0, false, ref);
    if (this.previews.get(id) === one) this.remove(id, one, this.previews);
    return { origin, ...(text !== undefined && { text }) };
  }

  private remove(id: number, one: ShownTab, from = this.tabs): void {
    from.delete(id);
    one.close();
  }

  private readonly onUpdated = (id: number, { status }: { status?: string }): void => {
    const one = this.tabs.get(id);
    if (!one || !status) return;
    one.loads++;
    this.changed();
  };

  /** More is known of a tab. */
  known(id: number): void {
    if (this.tabs.has(id)) this.updateSoon();
  }

  protected async update(): Promise<void> {
    const open = new Map<number, chrome.tabs.Tab>();
    if (this.on) for (const tab of await chrome.tabs.query({})) if (tab.id !== undefined) open.set(tab.id, tab);
    const before = this.list();
    for (const [id, one] of this.tabs) {
      const { url = "" } = open.get(id) ?? {};
      if (webOrigin(url) !== one.origin || !this.isFor(one.origin, url)) this.remove(id, one);
    }
    for (const [id, tab] of open) {
      const origin = webOrigin(tab.url ?? "");
      const one = this.tabs.get(id);
      if (one) {
        one.note(tab);
        this.share(one);
      } else if (origin && this.isFor(origin, tab.url!) && this.tabs.size < maxTabs)
        this.share(this.tabs.set(id, new ShownTab(this.user, id, origin, tab)).get(id)!);
    }
    const now = this.list();
    if (now.length !== before.length || now.some((one, i) => one !== before[i])) this.changed();
  }
}
