/**
 * dist/testing.js: an agent in a test. Importing it installs the page API if there is a document:
 * in jsdom, happy-dom and a browser. The agent speaks MCP with the page's own core, as any agent in
 * the page does.
 *
 * It keeps no contents of the page, and no clock: each read gets the present contents.
 */
import "./place.ts"; // first
import type * as types from "../testing.d.ts";
import type { PagewireTransport } from "../pagewire.d.mts";
import { boot } from "../page/early/pagewire.ts";
import { remote } from "./remote.ts";

// A test may replace the clock later.
const { setTimeout, clearTimeout } = globalThis;

if (typeof document === "object") {
  boot(location.href, {});
  // The class of happy-dom's document is not globalThis.Document.
  if (!document.modelContext) Object.defineProperty(document, "modelContext", { get: () => navigator.modelContext });
}

/** The default timeout of `updated`, in ms. */
const patience = 1000;

type Answer = { id?: number; method?: string; params?: { uri: string }; result?: never; error?: { message: string } };
type Content = { text?: string; blob?: string };

const textOf = (contents: readonly Content[]): string =>
  contents.map(({ text, blob, ...other }) => text ?? blob ?? JSON.stringify(other)).join("\n");

/** The transport to a page, and the page's origin. */
async function connect(page: types.DrivenPage | undefined): Promise<[PagewireTransport, string]> {
  if (page) return await remote(page);
  if (typeof document === "object") return [globalThis.pagewire.connect(), location.origin];
  throw new Error(
    "pagewire: there is no page to watch: the test needs a document when it imports pagewire/testing (jsdom, happy-dom or a browser), or hands over a page of Playwright or Puppeteer",
  );
}

export const watch: typeof types.watch = async (page) => {
  const [transport, origin] = await connect(page);
  const waiting = new Map<number, { resolve(result: never): void; reject(cause: Error): void }>();
  /**
   * Each URI that was read, to whether it has changed since; and the checks of the waiting calls of
   * `updated`.
   */
  const changed = new Map<string, boolean>();
  const told = new Set<() => void>();
  let last = 0;

  transport.onmessage = ({ id, method, params, result, error }: Answer) => {
    if (method === "notifications/resources/updated") {
      changed.set(params!.uri, true);
      for (const look of told) look();
    }
    const call = waiting.get(id!);
    waiting.delete(id!);
    if (error) call?.reject(new Error(error.message, { cause: error }));
    else call?.resolve(result!);
  };
  let ended = new Error("pagewire: the page was left, or its core has ended");
  transport.onerror = (cause) => (ended = cause);
  transport.onclose = () => {
    for (const call of waiting.values()) call.reject(ended);
    waiting.clear();
  };
  const say = (message: object) => transport.send({ jsonrpc: "2.0", ...message });
  const ask = <T>(method: string, params: object): Promise<T> =>
    new Promise<T>((resolve, reject) => {
      const id = ++last;
      waiting.set(id, { resolve, reject });
      say({ id, method, params }).catch(reject);
    });
  const all = async <K extends string, T>(method: string, member: K): Promise<T[]> => {
    const found: T[] = [];
    let cursor: string | undefined;
    do {
      const page = await ask<{ [k in K]: T[] } & { nextCursor?: string }>(method, { ...(cursor && { cursor }) });
      found.push(...page[member]);
      cursor = page.nextCursor;
    } while (cursor);
    return found;
  };
  const absolute = (uri: string) => new URL(uri, origin).href;

  const { capabilities } = await ask<{ capabilities: { tools?: object } }>("initialize", {
    protocolVersion: "2025-11-25",
    capabilities: {},
    clientInfo: { name: "pagewire/testing", version: "1" },
  });
  await say({ method: "notifications/initialized" });

  return {
    async list() {
      const resources = await all<"resources", types.Listed>("resources/list", "resources");
      return resources.concat(await all("resources/templates/list", "resourceTemplates"));
    },
    tools: async () => (capabilities.tools ? await all("tools/list", "tools") : []),
    async read(given) {
      const uri = absolute(given);
      // Before the read, so that no change is missed.
      if (!changed.has(uri)) await ask("resources/subscribe", { uri });
      changed.set(uri, false);
      return textOf((await ask<{ contents: Content[] }>("resources/read", { uri })).contents);
    },
    async updated(given, { timeout = patience } = {}) {
      const uri = absolute(given);
      if (!changed.has(uri)) throw new Error(`pagewire: '${uri}' was not read: an agent is told of what it has read`);
      if (changed.get(uri)) return;
      await new Promise<void>((resolve, reject) => {
        const end = (settle: () => void) => {
          clearTimeout(timer);
          told.delete(look);
          settle();
        };
        const timer = setTimeout(() => {
          const why = `'${uri}' was not announced within ${timeout} ms: does the page call notifyResourceUpdated?`;
          end(() => reject(new Error(`pagewire: ${why}`)));
        }, timeout);
        const look = () => changed.get(uri) && end(resolve);
        told.add(look);
      });
    },
    async call(name, args = {}) {
      const asked = ask<{ content: Content[]; isError?: boolean }>("tools/call", { name, arguments: args });
      const { content, isError } = await asked;
      if (isError) throw new Error(textOf(content));
      return textOf(content);
    },
    close: () => transport.close(),
  };
};
