/**
 * The meter: counts the host's requests as they leave the page, separately with and without
 * subscriptions.
 */
interface Count {
  since: number;
  seconds: number;
  calls: number;
  shown: number;
  row: HTMLElement;
}

export class Meter {
  readonly #counts = { on: this.#count("on"), off: this.#count("off") };
  #now: Count = this.#counts.on;

  constructor() {
    setInterval(() => this.#draw(), 500);
  }

  #count(name: string): Count {
    return { since: 0, seconds: 0, calls: 0, shown: 0, row: document.getElementById(`row-${name}`)! };
  }

  /** Begins to count from 0, with or without subscriptions. */
  start(subscriptions: boolean): void {
    this.#now = subscriptions ? this.#counts.on : this.#counts.off;
    Object.assign(this.#now, { since: performance.now(), calls: 0, shown: 0 });
    for (const { row } of Object.values(this.#counts)) row.toggleAttribute("aria-current", row === this.#now.row);
  }

  shown(): void {
    this.#now.shown++;
  }

  /**
   * fetch, for the client's transport. It does not count the handshake and the stream of
   * notifications, which are no calls of a View.
   */
  fetch(url: string | URL, init?: RequestInit): Promise<Response> {
    const { method, params } = (typeof init?.body === "string" ? JSON.parse(init.body) : {}) as {
      method?: string;
      params?: { uri?: string; notifications?: { resourceSubscriptions?: string[] } };
    };
    if (method && !/^(initialize|server\/discover|notifications\/initialized)$/.test(method)) {
      this.#now.calls++;
      const line = document.createElement("li");
      line.textContent = `${method} ${params?.uri ?? params?.notifications?.resourceSubscriptions?.join(" ") ?? ""}`;
      const list = document.getElementById("calls")!;
      list.prepend(line);
      while (list.children.length > 50) list.lastChild!.remove();
    }
    return fetch(url, init);
  }

  trouble(text: string): void {
    const element = document.getElementById("trouble")!;
    element.textContent = text;
    element.hidden = !text;
  }

  #draw(): void {
    const count = this.#now;
    if (!count.since) return;
    count.seconds = Math.round((performance.now() - count.since) / 1000);
    const values: Record<string, string> = {
      seconds: `${count.seconds}`,
      calls: `${count.calls}`,
      rate: count.seconds >= 5 ? `${Math.round((count.calls * 60) / count.seconds)}` : "–",
      shown: `${count.shown}`,
    };
    for (const [of, value] of Object.entries(values)) count.row.querySelector(`[data-of=${of}]`)!.textContent = value;
  }
}
