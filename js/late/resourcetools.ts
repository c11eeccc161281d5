/**
 * What the three tools of page/resourcetools.ts answer. They need no core: the page layer has the resources, and the
 * registry's changes since this file was loaded are counted here. Only what a template or a uriSchema has to be matched
 * for is asked of the core, which has the one implementation of that.
 *
 * Results are shaped as MCP's (`resources`, `contents`), with a `revision`; what goes wrong is a result too, with
 * `isError`, because browsers do not hand on what a tool throws. The page's own words are in none of them, unless it
 * exposes its errors. Input is checked here: browsers do not hold it against the schema.
 */
import { isObject } from "../page/basics.ts";
import { type Item, jsonLength } from "./contents.ts";
import {
  listen,
  microtask,
  parse,
  SafeAbortController,
  SafeMap,
  SafePromise,
  slice,
  stringify,
  unlisten,
} from "./intrinsics.ts";
import { partOf } from "./pointer.ts";
import { Status } from "../link/link.ts";
import { copiesOf, describe, type Reads } from "./reads.ts";
import type { Revisions } from "./revisions.ts";
import type { Carrier, Entry, Early, Port } from "../page/shared.ts";

const pageSize = 200;
const maxWait = 25_000;
const maxURIs = 100;
/** The engine's default for a read. */
const readTimeout = 30_000;
/** Calls that may run at a time: the engine's default for the reads of a session. */
const maxCalls = 64;
/** UTF-16 code units of a result's JSON. A sixteenth of what MCP clients get: this goes into a model. */
const maxResult = 1_048_576;
const { setTimeout, clearTimeout } = globalThis;
const { min } = Math;

type Input = {
  cursor?: unknown;
  uri?: unknown;
  pointer?: unknown;
  uris?: unknown;
  since?: unknown;
  timeoutMs?: unknown;
};

/** A failure in our own words, which the agent may see. */
class Refusal {
  constructor(readonly words: string) {}
}
const refuse = (words: string): never => {
  throw new Refusal(words);
};

export function resourceTools(
  { shared, settings, own }: Early,
  revisions: Revisions,
  reads: Reads,
  open: (carrier: Carrier) => Promise<Port>,
) {
  const { entries } = shared;
  const { epoch, at } = revisions;
  /** Those who wait: each looks whether it is its turn, and after one has, it is gone. */
  const waiting = new SafeMap<number, () => void>();
  let lastWait = 0;
  /** What resources_list has listed, in the order of registration: places that stay good while others come and go. */
  let places = new SafeMap<Entry, number>();
  let lastPlace = 0;
  let running = 0;
  let due = false;

  shared.changed = (key) => {
    revisions.changed(key);
    // All that changes within a turn is one answer.
    if (due || !waiting.size) return;
    due = true;
    microtask(() => {
      due = false;
      waiting.forEach((look) => look());
    });
  };

  const now = () => `${epoch}-${revisions.now()}`;
  /** The number in a revision; -1, so that all is changed since, for one of another document or none. */
  const parseSince = (since: unknown): number => {
    if (since === undefined) return revisions.now();
    if (typeof since !== "string") return refuse("'since' is not a string");
    const head = `${epoch}-`;
    const number = slice(since, 0, head.length) === head ? +slice(since, head.length) : -1;
    return number >= 0 && number <= revisions.now() ? number : -1;
  };

  const canonical = (uri: unknown): string => {
    if (typeof uri !== "string") return refuse("'uri' is not a string");
    try {
      return own(uri);
    } catch (cause) {
      return refuse((cause as Error).message); // uri.ts's words
    }
  };

  /** Whether a template, or a resource that takes parameters, may answer for a URI that is not registered. */
  function isWide(uri: string): boolean {
    let wide = false;
    entries.forEach((_, key) => {
      wide ||= revisions.covers(key, uri);
    });
    return wide;
  }
  const literal = (key: string) => {
    let end = 0;
    while (end < key.length && key[end] !== "{") end++;
    return end;
  };

  function list({ cursor }: Input): object {
    const from = cursor === undefined ? 0 : typeof cursor === "string" ? +cursor : -1;
    if (!(from >= 0 && from <= lastPlace && from % 1 === 0)) refuse("'cursor' is not one of resources_list");
    const resources: object[] = [];
    const resourceTemplates: object[] = [];
    let count = 0;
    let size = 0;
    let end = 0;
    let more = false as boolean;
    const present = new SafeMap<Entry, number>();
    entries.forEach((entry, key) => {
      const place = places.get(entry) ?? ++lastPlace;
      present.set(entry, place);
      if (more || place <= from) return;
      size += entry.descriptor.length;
      more = count === pageSize || (count > 0 && size > maxResult);
      if (!more) {
        count++;
        end = place;
        const { uri, uriSchema, minUpdateInterval: _, ...rest } = parse(entry.descriptor);
        if (literal(key) < key.length) resourceTemplates[resourceTemplates.length] = { uriTemplate: uri, ...rest };
        else resources[resources.length] = { uri, ...rest, ...(uriSchema && { uriSchema }) };
      }
    });
    places = present;
    return {
      revision: now(),
      resources,
      resourceTemplates,
      ...(more && { nextCursor: `${end}` }),
    };
  }

  async function read({ uri: given, since, pointer }: Input, signal: AbortSignal): Promise<object> {
    const uri = canonical(given);
    const entry = entries.get(uri);
    const revision = now();
    if (!entry || literal(uri) < uri.length)
      return isWide(uri)
        ? { revision, contents: parts(await readWide(uri, signal), pointer) }
        : refuse(`'${uri}' is not registered; resources_list says what is`);
    // Only of a resource that announces its changes can it be said that there was none.
    if (since !== undefined && revisions.knows(uri) && at(uri) <= parseSince(since))
      return { revision, unchanged: true };
    const reading = reads.read(uri, uri, "");
    listen(signal, "abort", reading.leave, { once: true });
    const { status, contents, cause } = await reading.outcome;
    if (!contents)
      return refuse(
        settings.exposeErrors
          ? describe(cause)
          : `reading '${uri}' ${status === Status.failed ? "failed" : "gave no contents"}`,
      );
    return { revision, contents: parts(copiesOf(contents), pointer) };
  }

  /** The contents, or what a pointer points to in each. */
  function parts(contents: Item[], pointer: unknown): Item[] {
    if (pointer === undefined) return contents;
    if (typeof pointer !== "string") return refuse("'pointer' is not a string");
    const found: Item[] = [];
    for (let i = 0; i < contents.length; i++) {
      const part = partOf(contents[i]!.text ?? "", pointer);
      found[i] = "why" in part ? refuse(part.why) : { ...contents[i]!, text: part.text };
    }
    return found;
  }

  /** Asks the core, as an agent does. */
  async function readWide(uri: string, signal: AbortSignal): Promise<Item[]> {
    let finish!: (contents: Item[]) => void;
    let fail!: (cause: unknown) => void;
    const answer = new SafePromise<Item[]>((resolve, reject) => ((finish = resolve), (fail = reject)));
    const port = await open({
      deliver: (message) => {
        const { result, error } = message as { result?: { contents: Item[] }; error?: { message: string } };
        if (result) finish(result.contents);
        else fail(new Refusal(error!.message));
      },
      closed: (reason) => fail(new Refusal(reason)),
    });
    const stop = () => port.close("the tool's call has ended");
    listen(signal, "abort", stop);
    port.receive(
      stringify({
        jsonrpc: "2.0",
        id: 1,
        method: "resources/read",
        params: {
          uri,
          _meta: {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
          },
        },
      }),
    );
    try {
      return await answer;
    } finally {
      unlisten(signal, "abort", stop);
      stop();
    }
  }

  async function wait({ uris, since, timeoutMs = maxWait }: Input, signal: AbortSignal): Promise<object> {
    if (typeof timeoutMs !== "number" || !(timeoutMs >= 0)) refuse("'timeoutMs' is not a number of milliseconds");
    const from = parseSince(since);
    const keys: string[] = [];
    if (uris !== undefined) {
      const count = (uris as { length?: unknown } | null)?.length;
      if (typeof uris !== "object" || typeof count !== "number" || count > maxURIs)
        return refuse(`'uris' is not an array of at most ${maxURIs}`);
      for (let i = 0; i < count; i++) {
        const key = (keys[i] = canonical((uris as unknown[])[i]));
        if (!entries.has(key) && !isWide(key)) refuse(`'${key}' is not registered; resources_list says what is`);
      }
    }
    const updated = (): string[] => {
      const found: string[] = [];
      const look = (key: string) => {
        if (key && at(key) > from) found[found.length] = key;
      };
      if (!keys.length) {
        revisions.each(look);
        if (revisions.floor() > from) entries.forEach((_, key) => revisions.knows(key) || look(key));
      }
      for (let i = 0; i < keys.length; i++) look(keys[i]!);
      return found;
    };
    const listed = () => !keys.length && at("") > from;
    const result = () => ({ revision: now(), updated: updated(), ...(listed() && { listChanged: true }) });
    if (from < 0 || updated().length || listed()) return result();
    await new SafePromise<void>((done) => {
      const id = ++lastWait;
      const end = () => {
        waiting.delete(id);
        clearTimeout(timer);
        unlisten(signal, "abort", end);
        done();
      };
      const timer = setTimeout(end, min(timeoutMs as number, maxWait));
      waiting.set(id, () => (updated().length || listed()) && end());
      listen(signal, "abort", end);
    });
    return result();
  }

  const call = { resources_list: list, resources_read: read, resources_wait: wait };

  return {
    async answer(name: string, input: unknown, signal: AbortSignal | undefined): Promise<object> {
      const abort: AbortController = new SafeAbortController();
      const stop = () => abort.abort();
      const timer = setTimeout(stop, readTimeout);
      running++;
      try {
        if (running > maxCalls) refuse(`more than ${maxCalls} calls at a time`);
        if (signal) listen(signal, "abort", stop);
        if (signal?.aborted) stop();
        const result = await new SafePromise<{ contents?: Item[] }>((resolve, reject) => {
          listen(abort.signal, "abort", () =>
            reject(new Refusal(`${name} was aborted, or took longer than ${readTimeout / 1000} s`)),
          );
          // Promise.race would look up what a page may have patched.
          void (async () => {
            try {
              resolve(await call[name as keyof typeof call]((isObject(input) ? input : {}) as Input, abort.signal));
            } catch (cause) {
              reject(cause);
            }
          })();
        });
        if (result.contents && jsonLength(result.contents) > maxResult)
          refuse(`the contents are larger than ${maxResult} characters`);
        return result;
      } catch (cause) {
        return {
          isError: true,
          content: [
            {
              type: "text",
              text: cause instanceof Refusal ? cause.words : `${name} failed: ${(cause as Error | null)?.message}`,
            },
          ],
        };
      } finally {
        running--;
        clearTimeout(timer);
        if (signal) unlisten(signal, "abort", stop);
      }
    },
    /** The document was frozen: whoever asks is told that all has changed. */
    thawed(): void {
      revisions.frozen();
      waiting.forEach((look) => look());
    },
  };
}
