/**
 * What the extension itself reports to a gateway: short texts on the browser, at a pace. Transports
 * treat a report as a document that belongs to no page. This worker makes its frames.
 * bridge/pages/socket/front.go and tabs.go take them.
 */
import { linkVersion } from "../link/link.ts";
import { shortTitle, TabFollower, urlWithin, webOrigin, withoutQuery } from "./tabs.ts";
import type { Link, Linkable, LinkEvents, TabName } from "./transport.ts";

/** The version of Pagewire; js/build puts it in. */
declare const PAGEWIRE_VERSION: string;

/** The first frame of a link whose other end is this worker and no page. */
export const hello = (about: object): string => JSON.stringify([["hello", linkVersion, PAGEWIRE_VERSION, about]]);

/** While it does not follow the browser nothing is reported, not even a report that had begun. */
abstract class Report extends TabFollower implements Linkable {
  readonly origin: string;
  readonly admitted = true;
  protected name: TabName = String;
  /** What was reported last on the present link; "" before its hello. */
  private sent = "";
  /** The present link's. */
  private events: LinkEvents | undefined;

  /** No other document has the id. */
  constructor(
    readonly id: number,
    private readonly kind: string,
    pause: number,
  ) {
    super(pause);
    this.origin = `pagewire://${kind}`;
  }

  /** Looks at the browser, and sends what there is to report. */
  protected abstract report(events: LinkEvents): Promise<void>;

  /** Takes a frame of the gateway. */
  protected asked(_: LinkEvents): void {}

  protected async update(): Promise<void> {
    if (this.events) await this.report(this.events);
  }

  link(name: TabName, events: LinkEvents): Link {
    const close = () => {
      if (this.isFor(events)) this.events = undefined;
    };
    this.name = name;
    this.events = events;
    this.sent = "";
    void this.report(events).catch(this.updateSoon); // not after a pause: the gateway waits for a hello
    return {
      send: () => this.asked(events),
      close,
      refuse(why) {
        close();
        events.closed(why);
      },
    };
  }

  /** A worker that asks the browser for something is not suspended. */
  keepAlive(): void {
    this.updateSoon();
  }

  /**
   * Sends a report, after the link's hello with these facts. The same report is not sent twice,
   * unless it is `again`.
   */
  protected send(events: LinkEvents, text: string, again = false, facts?: object): void {
    if (!this.on || !this.isFor(events) || (text === this.sent && !again)) return;
    const about = { epoch: this.kind, tab: this.name(0), frame: "", origin: this.origin, ...facts };
    if (!this.sent) events.frame(hello(about));
    this.sent = text;
    events.frame(text);
  }

  /** Whether the link with these events goes on. */
  protected isFor(events: LinkEvents): boolean {
    return this.events === events;
  }
}

/** The tab in front of the user. Only the title and the URL are a page's. */
export class FrontTab extends Report {
  constructor(private readonly user: { admits(origin: string): Promise<boolean>; profile(): string }) {
    super(Number.MAX_SAFE_INTEGER, "front", 100);
  }

  protected causes() {
    return [chrome.tabs.onActivated, chrome.tabs.onUpdated, chrome.windows.onFocusChanged];
  }

  protected async report(events: LinkEvents): Promise<void> {
    const [front] = await chrome.tabs.query({ active: true, lastFocusedWindow: true });
    // The user may let the extension run in private windows: agents learn nothing of them all the same.
    const { id = 0, windowId, url = "", title } = front?.incognito ? {} : (front ?? {});
    const focused = windowId !== undefined && (await chrome.windows.get(windowId)).focused;
    const origin = webOrigin(url);
    const allowed = origin && (await this.user.admits(origin));
    const { name } = this;
    const text = JSON.stringify({
      ...{ focused, tab: name(id), origin },
      ...(windowId !== undefined && { window: name(windowId) }),
      ...(allowed && { title: shortTitle(title), url: urlWithin(origin, url) }),
    });
    // A focused tab is reported again: the user may have looked at a tab of another browser
    // meanwhile.
    this.send(events, text, focused, { browser: navigator.userAgent, profile: this.user.profile() });
  }
}

/** The most tabs that are named, and the longest title and address. */
const mostNamed = 200;
const longest = 300;

/**
 * The number of open tabs that offer agents nothing. Agents learn that there are some, and never
 * which. The person's own `pagewire ls` asks for titles and addresses, and only then do they leave
 * the browser.
 */
export class TabCount extends Report {
  /**
   * `offers` reports whether agents may have something of a tab, and `target` is its key by CDP.
   */
  constructor(private readonly user: { offers(tab: number): boolean; target(tab: number): string | undefined }) {
    super(Number.MAX_SAFE_INTEGER - 1, "tabs", 2000);
  }

  protected causes() {
    return [chrome.tabs.onUpdated, chrome.tabs.onRemoved];
  }

  override follow(on: boolean): void {
    super.follow(on);
    if (on) this.updateSoon(); // agents may have something of another tab now
  }

  /** Private tabs are neither counted nor named. */
  private async bare(): Promise<{ title: string; url: string; target: string }[]> {
    const { user } = this;
    const isBare = ({ id, url = "", incognito }: chrome.tabs.Tab) =>
      id !== undefined && !incognito && webOrigin(url) && !user.offers(id);
    return (await chrome.tabs.query({})).filter(isBare).map(({ id, url = "", title }) => ({
      title: shortTitle(title, longest),
      url: withoutQuery(url).slice(0, longest),
      target: user.target(id!) ?? "",
    }));
  }

  protected async report(events: LinkEvents): Promise<void> {
    const bare = await this.bare();
    this.send(events, JSON.stringify({ count: bare.length, targets: bare.flatMap(({ target }) => target || []) }));
  }

  /** The gateway asks for nothing but names. */
  protected override async asked(events: LinkEvents): Promise<void> {
    const named = this.on ? (await this.bare().catch(() => [])).slice(0, mostNamed) : [];
    if (this.isFor(events)) events.frame(JSON.stringify({ named }));
  }
}
