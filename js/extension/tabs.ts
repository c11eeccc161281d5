/**
 * The number of open tabs that offer agents nothing. Agents learn that there are some, and never which. The person's
 * own `pagewire ls` asks for titles and addresses, and only then do they leave the browser. Transports treat this as a
 * document that belongs to no page, as front.ts. bridge/gateway/pages/socket/tabs.go takes its frames.
 */
import { linkVersion } from "../link/link.ts";
import type { Link, LinkEvents } from "./documents.ts";
import { webOrigin } from "./permissions.ts";
import type { Linkable, TabName } from "./transport.ts";

/**
 * The pause after a count, in ms: pages may change their titles many times a second. The most tabs that are named, and
 * the longest title and address.
 */
const pause = 2000;
const most = 200;
const longest = 300;

/** The version of Pagewire; js/build puts it in. */
declare const PAGEWIRE_VERSION: string;

export class Tabs implements Linkable {
  /** No other document has it. */
  readonly id = Number.MAX_SAFE_INTEGER - 1;
  readonly origin = "pagewire://tabs";
  readonly admitted = true;
  private on = false;
  private due = false;
  private looking = false;
  private last = "";
  private name: TabName = String;
  private events: LinkEvents | undefined;

  /** `offers` reports whether agents may have something of a tab, and `target` is its key by CDP. */
  constructor(private readonly user: { offers(tab: number): boolean; target(tab: number): string | undefined }) {}

  /** Begins or ends to count. */
  follow(on: boolean): void {
    if (on !== this.on)
      for (const event of [chrome.tabs.onUpdated, chrome.tabs.onRemoved])
        event[on ? "addListener" : "removeListener"](this.look);
    this.on = on;
    if (on) void this.look();
  }

  link(name: TabName, events: LinkEvents): Link {
    const end = () => {
      if (this.events === events) this.events = undefined;
    };
    this.name = name;
    this.events = events;
    this.last = "";
    void this.report(events).catch(this.look); // not after a pause: the gateway waits for a hello
    return {
      send: () => void this.tell(events), // it asks for nothing else
      close: end,
      refuse(why) {
        end();
        events.closed(why);
      },
    };
  }

  /** A worker that asks the browser for something is not suspended. */
  keepAlive(): void {
    void this.look();
  }

  /** Counts the tabs. While it does, further calls lead to one further count. */
  private readonly look = async (): Promise<void> => {
    this.due = true;
    if (this.looking) return;
    this.looking = true;
    while (this.due && this.events) {
      this.due = false;
      await this.report(this.events).catch(() => {}); // the browser ends
      await new Promise((done) => setTimeout(done, pause));
    }
    this.looking = false;
  };

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

  private async report(events: LinkEvents): Promise<void> {
    const bare = await this.bare();
    const text = JSON.stringify({ count: bare.length, targets: bare.flatMap(({ target }) => target || []) });
    if (this.events !== events || !this.on || text === this.last) return;
    const about = { epoch: "tabs", tab: this.name(0), frame: "", origin: this.origin };
    if (!this.last) events.frame(JSON.stringify([["hello", linkVersion, PAGEWIRE_VERSION, about]]));
    this.last = text;
    events.frame(text);
  }

  private async tell(events: LinkEvents): Promise<void> {
    const named = this.on ? (await this.bare().catch(() => [])).slice(0, most) : [];
    if (this.events === events) events.frame(JSON.stringify({ named }));
  }
}
