/**
 * The browser's ports between the extension's scripts: who may open one, its end, and how much may
 * come over it.
 */

/** Calls `closed` when the other end has closed a port. */
export function onClosed(port: chrome.runtime.Port, closed: () => void): void {
  port.onDisconnect.addListener(() => {
    void chrome.runtime.lastError; // if it is not read, Chromium logs that the back/forward cache has closed the port
    closed();
  });
}

/**
 * Serves ports of this name that the extension's scripts open in the top documents of tabs.
 * `accept` says whether somebody has asked for the port, which otherwise is closed.
 */
export function servePorts(
  name: string,
  accept: (port: chrome.runtime.Port, tab: number, origin: string | undefined) => boolean | undefined,
): void {
  chrome.runtime.onConnect.addListener((port) => {
    if (port.name !== name) return;
    const { id, tab, frameId, origin } = port.sender ?? {};
    const isOurs = id === chrome.runtime.id && frameId === 0 && tab?.id !== undefined;
    if (!isOurs || !accept(port, tab.id!, origin)) port.disconnect();
  });
}

/** Bounds how often something happens: `rate` times a second, and `burst` times at once. */
export class TokenBucket {
  /** What is left as of `filled`; negative after too much. */
  private tokens: number;
  private filled = performance.now();

  constructor(
    private readonly rate: number,
    private readonly burst: number,
  ) {
    this.tokens = burst;
  }

  /**
   * Takes tokens, and returns whether there were enough. The bounds of `shares` that use one bucket
   * add up.
   */
  take(tokens = 1, shares = 1): boolean {
    const now = performance.now();
    const filled = this.tokens + ((now - this.filled) / 1000) * this.rate * shares;
    this.tokens = Math.min(this.burst * shares, filled) - tokens;
    this.filled = now;
    return this.tokens >= 0;
  }
}
