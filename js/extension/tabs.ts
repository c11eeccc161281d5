/**
 * The number of open tabs that offer agents nothing. Agents learn that there are some, and never which. The person's
 * own `pagewire ls` asks for titles and addresses, and only then do they leave the browser.
 * bridge/pages/socket/tabs.go takes the frames.
 */
import { webOrigin } from "./permissions.ts";
import { Report } from "./reports.ts";
import type { LinkEvents } from "./transport.ts";

/** The most tabs that are named, and the longest title and address. */
const most = 200;
const longest = 300;

export class Tabs extends Report {
  /** `offers` reports whether agents may have something of a tab, and `target` is its key by CDP. */
  constructor(private readonly user: { offers(tab: number): boolean; target(tab: number): string | undefined }) {
    super(Number.MAX_SAFE_INTEGER - 1, "tabs", 2000);
  }

  protected causes() {
    return [chrome.tabs.onUpdated, chrome.tabs.onRemoved];
  }

  override follow(on: boolean): void {
    super.follow(on);
    if (on) void this.look(); // agents may have something of another tab now
  }

  /** Private tabs are neither counted nor named. */
  private async bare(): Promise<{ title: string; url: string; target: string }[]> {
    const tabs = await chrome.tabs.query({});
    return tabs
      .filter(
        ({ id, url = "", incognito }) => id !== undefined && !incognito && webOrigin(url) && !this.user.offers(id),
      )
      .map(({ id, url = "", title = "" }) => ({
        title: title.slice(0, longest),
        url: url.replace(/[?#].*/s, "").slice(0, longest),
        target: this.user.target(id!) ?? "",
      }));
  }

  protected async report(events: LinkEvents): Promise<void> {
    const bare = await this.bare();
    this.say(events, JSON.stringify({ count: bare.length, targets: bare.flatMap(({ target }) => target || []) }));
  }

  /** The gateway asks for nothing but names. */
  protected override async asked(events: LinkEvents): Promise<void> {
    const named = this.on ? (await this.bare().catch(() => [])).slice(0, most) : [];
    if (this.isFor(events)) events.frame(JSON.stringify({ named }));
  }
}
