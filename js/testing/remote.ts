/**
 * pagewire.connect() in a page of a browser driver. It uses only the page's `evaluate`, which
 * Playwright and Puppeteer both have. Scripts are text: a function could be instrumented for
 * coverage.
 */
import type * as types from "../testing.d.ts";
import type { PagewireTransport } from "../pagewire.d.mts";

const agents = "globalThis[Symbol.for('pagewire.testing')]";

/**
 * Opens a port, keeps it in the page, and returns its number. `next` waits for messages; null means
 * the end.
 */
const open = `(() => {
  if (typeof globalThis.pagewire?.connect !== "function") return;
  const port = pagewire.connect();
  let messages = [], over = false, wake = () => {};
  port.onmessage = (message) => wake(messages.push(message));
  port.onclose = () => wake(over = true);
  const next = async () => {
    if (!messages.length && !over) await new Promise((done) => (wake = done));
    return messages.length ? messages.splice(0) : null;
  };
  return [(${agents} ??= []).push({ port, next }) - 1, location.origin];
})()`;

export async function remote(page: types.DrivenPage): Promise<[PagewireTransport, string]> {
  const opened = (await page.evaluate(open)) as [number, string] | undefined;
  if (!opened) throw new Error("pagewire: the page has no Pagewire: wait until its scripts have run, then watch it");
  const agent = `${agents}[${opened[0]}]`;
  const transport: PagewireTransport = {
    async start() {},
    async send(message) {
      try {
        await page.evaluate(`${agent}.port.send(${JSON.stringify(message)})`);
      } catch (cause) {
        throw new Error("pagewire: the page was left, or its agent was closed; watch it again", { cause });
      }
    },
    async close() {
      await page.evaluate(`${agent}.port.close()`);
    },
  };
  void (async () => {
    try {
      for (;;) {
        const messages = (await page.evaluate(`${agent}.next()`)) as object[] | null;
        if (!messages) break;
        for (const message of messages) transport.onmessage?.(message);
      }
    } catch {} // the page was left, or closed
    transport.onclose?.();
  })();
  return [transport, opened[1]];
}
