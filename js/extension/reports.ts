/**
 * What the extension itself reports to a gateway: short texts on the browser, at a pace. front.ts and tabs.ts make them.
 * Transports treat a report as a document that belongs to no page. This worker makes its frames.
 */
import { linkVersion } from "../link/link.ts";
import type { Link, Linkable, LinkEvents, TabName } from "./transport.ts";

/** The version of Pagewire; js/build puts it in. */
declare const PAGEWIRE_VERSION: string;

/** The first frame of a link whose other end is this worker and no page. */
export const hello = (about: object): string => JSON.stringify([["hello", linkVersion, PAGEWIRE_VERSION, about]]);

export abstract class Report implements Linkable {
  readonly origin: string;
  readonly admitted = true;
  protected on = false; // while it is false nothing is reported, not even a report that had begun
  protected name: TabName = String;
  private due = false;
  private looking = false;
  private last = "";
  private events: LinkEvents | undefined;

  /** No other document has the id. The pause after a look is in ms: pages may change their titles many times a second. */
  constructor(
    readonly id: number,
    private readonly kind: string,
    private readonly pause: number,
  ) {
    this.origin = `pagewire://${kind}`;
  }

  /** The browser's events after which there may be something else to report. */
  protected abstract causes(): { addListener(f: () => void): void; removeListener(f: () => void): void }[];

  /** Looks at the browser, and says what there is to report. */
  protected abstract report(events: LinkEvents): Promise<void>;

  /** Takes a frame of the gateway. */
  protected asked(_: LinkEvents): void {}

  /** Begins or ends to report. The browser's events wake a suspended worker, which looks when it starts. */
  follow(on: boolean): void {
    if (on === this.on) return;
    this.on = on;
    for (const event of this.causes()) event[on ? "addListener" : "removeListener"](this.look);
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
      send: () => this.asked(events),
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

  /** Reports. While it does, further calls lead to one further report. */
  readonly look = async (): Promise<void> => {
    this.due = true;
    if (this.looking) return;
    this.looking = true;
    while (this.due && this.events) {
      this.due = false;
      await this.report(this.events).catch(() => {}); // a tab has gone, and another event follows; or the browser ends
      await new Promise((done) => setTimeout(done, this.pause));
    }
    this.looking = false;
  };

  /** Sends a report, after the link's hello with these facts. What has been said last is not said again by itself. */
  protected say(events: LinkEvents, text: string, again = false, facts?: object): void {
    if (!this.on || !this.isFor(events) || (text === this.last && !again)) return;
    const about = { epoch: this.kind, tab: this.name(0), frame: "", origin: this.origin, ...facts };
    if (!this.last) events.frame(hello(about));
    this.last = text;
    events.frame(text);
  }

  /** Whether the link with these events goes on. */
  protected isFor(events: LinkEvents): boolean {
    return this.events === events;
  }
}
