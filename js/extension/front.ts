/**
 * The reports of the tab in front of the user. Only the title and the URL in them are a page's.
 * bridge/pages/socket/front.go checks them.
 */
import { maxTitle, maxURL } from "./documents.ts";
import { webOrigin } from "./permissions.ts";
import { Report } from "./reports.ts";
import type { LinkEvents } from "./transport.ts";

export class Front extends Report {
  constructor(private readonly user: { admits(origin: string): Promise<boolean>; profile(): string }) {
    super(Number.MAX_SAFE_INTEGER, "front", 100);
  }

  protected causes() {
    return [chrome.tabs.onActivated, chrome.tabs.onUpdated, chrome.windows.onFocusChanged];
  }

  protected async report(events: LinkEvents): Promise<void> {
    const [tab] = await chrome.tabs.query({ active: true, lastFocusedWindow: true });
    const { id = 0, windowId, url = "", title = "" } = tab ?? {};
    const focused = windowId !== undefined && (await chrome.windows.get(windowId)).focused;
    const origin = webOrigin(url);
    const allowed = origin && (await this.user.admits(origin));
    const { name } = this;
    const text = JSON.stringify({
      ...{ focused, tab: name(id), origin },
      ...(windowId !== undefined && { window: name(windowId) }),
      ...(allowed && {
        title: title.slice(0, maxTitle),
        url: url.startsWith(origin + "/") && url.length <= maxURL ? url : origin + "/",
      }),
    });
    // A focused tab is reported again: the user may have looked at a tab of another browser meanwhile.
    this.say(events, text, focused, { browser: navigator.userAgent, profile: this.user.profile() });
  }
}
