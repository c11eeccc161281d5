/**
 * The reports of the tab in front of the user. Transports treat them as a document that belongs to no page. This worker
 * makes its frames; only the title and the URL in them are a page's. bridge/gateway/pages/socket/front.go checks them.
 */
import { linkVersion } from "../link/link.ts";
import { type Link, type LinkEvents, maxTitle, maxURL } from "./documents.ts";
import { webOrigin } from "./permissions.ts";
import type { Linkable, TabName } from "./transport.ts";

/** The pause after a report, in ms: the page in front may change its title many times a second. */
const pause = 100;

/** The version of Pagewire; js/build puts it in. */
declare const PAGEWIRE_VERSION: string;

export class Front implements Linkable {
  /** No other document has it. */
  readonly id = Number.MAX_SAFE_INTEGER;
  readonly origin = "pagewire://front";
  readonly admitted = true;
  private on = false; // while it is false nothing is reported, not even a report that had begun
  private due = false;
  private looking = false;
  private last = "";
  private name: TabName = String;
  private events: LinkEvents | undefined;

  constructor(private readonly user: { admits(origin: string): Promise<boolean>; profile(): string }) {}

  /** Begins or ends to follow the user's tabs. Their events wake a suspended worker, which looks when it starts. */
  follow(on: boolean): void {
    if (on === this.on) return;
    this.on = on;
    for (const event of [chrome.tabs.onActivated, chrome.tabs.onUpdated, chrome.windows.onFocusChanged])
      event[on ? "addListener" : "removeListener"](this.look);
  }

  link(name: TabName, events: LinkEvents): Link {
    const end = () => {
      if (this.events === events) this.events = undefined;
    };
    this.name = name;
    this.events = events;
    this.last = "";
    this.look();
    return {
      send() {},
      close: end,
      refuse(why) {
        end();
        events.closed(why);
      },
    };
  }

  /** A worker that asks the browser for something is not suspended. */
  keepAlive(): void {
    this.look();
  }

  /** Reports the tab in front. While it does, further calls lead to one further report. */
  readonly look = async (): Promise<void> => {
    this.due = true;
    if (this.looking) return;
    this.looking = true;
    while (this.due && this.events) {
      this.due = false;
      await this.report(this.events).catch(() => {}); // its tab has gone, and another event follows
      await new Promise((done) => setTimeout(done, pause));
    }
    this.looking = false;
  };

  private async report(events: LinkEvents): Promise<void> {
    const [tab] = await chrome.tabs.query({ active: true, lastFocusedWindow: true });
    const { id = 0, windowId, url = "", title = "" } = tab ?? {};
    const focused = windowId !== undefined && (await chrome.windows.get(windowId)).focused;
    const origin = webOrigin(url);
    const allowed = origin && (await this.user.admits(origin));
    if (this.events !== events || !this.on) return;
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
    if (text === this.last && !focused) return;
    const about = { epoch: "front", tab: name(0), frame: "", origin: this.origin };
    const browser = { browser: navigator.userAgent, profile: this.user.profile() };
    if (!this.last) events.frame(JSON.stringify([["hello", linkVersion, PAGEWIRE_VERSION, { ...about, ...browser }]]));
    this.last = text;
    events.frame(text);
  }
}
