/**
 * Answers the three tools of early/resourcetools.ts. They need no core: the page layer has the
 * resources, and counts their changes since this file was loaded. Only a URI of a template or a
 * uriSchema is read through the core, which alone implements the matching.
 *
 * Results are shaped as MCP's (`resources`, `contents`), with a `revision`. A failure is a result
 * with `isError`, because browsers do not pass on a tool's exception. It has the page's error
 * message only if the page exposes its errors. Input is checked here, since browsers do not check
 * it against the schema.
 */
import { type Item, jsonLength } from "../resources/contents.ts";
import { isObject } from "../early/basics.ts";
import { isTemplate, type Revisions } from "../resources/revisions.ts";
import type { Carrier, Early, Port } from "../early/shared.ts";
import { listen, SafeAbortController, SafePromise, stringify, unlisten } from "../common/intrinsics.ts";
import { difference } from "./delta.ts";
import { lookalikes } from "./lookalike.ts";
import { memoriesOf } from "./memory.ts";
import { resourceWaits } from "./resourcewait.ts";
import { copiesOf, describe, type Reads } from "../resources/reads.ts";
import { partOf } from "./pointer.ts";
import { exposes, failure, Refusal, refuse } from "../common/refusal.ts";
import { resourceList } from "./resourcelist.ts";
import { Status } from "../../link/link.ts";
import { isArray } from "../common/binary.ts";

const maxWait = 25_000;
const maxURIs = 100;
/** The engine's default for a read. */
const readTimeout = 30_000;
/** Calls that may run at a time: the engine's default for the reads of a session. */
const maxCalls = 64;
/**
 * UTF-16 code units of a result's JSON: a sixteenth of the limit for MCP clients, since this goes
 * into a model.
 */
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
type Result = { readonly revision: string; readonly contents?: Item[] };
type Open = (carrier: Carrier) => Promise<Port>;

export function resourceTools({ shared, settings, own }: Early, revisions: Revisions, reads: Reads, open: Open) {
  const { entries } = shared;
  const list = resourceList(shared, maxResult);
  const waits = resourceWaits(revisions);
  let running = 0;

  const lookalike = lookalikes(shared, revisions);
  shared.changed = (key, relisted) => {
    lookalike(relisted || key, !key);
    // Who was given the former contents must not take those of another registration for them.
    if (relisted) revisions.changed(relisted, true);
    revisions.changed(key);
    waits.checkSoon();
  };

  const memories = memoriesOf(revisions);
  /** The caller to whom `since` was given. */
  const callerOf = (since: unknown) =>
    since === undefined || typeof since === "string" ? memories.caller(since) : refuse("'since' is not a string");
  const canonical = (uri: unknown): string => {
    if (typeof uri !== "string") return refuse("'uri' is not a string");
    try {
      return own(uri);
    } catch (cause) {
      return refuse((cause as Error).message); // uri.ts's words
    }
  };
  const unknown = (uri: string) => refuse(`'${uri}' is not registered; resources_list says what is`);

  async function contentsOf(uri: string, signal: AbortSignal): Promise<Item[]> {
    if (!entries.has(uri) || isTemplate(uri))
      return revisions.mayAnswer(uri) ? await askCore(open, uri, signal) : unknown(uri);
    const reading = reads.read(uri, uri, "");
    listen(signal, "abort", reading.leave, { once: true });
    const { status, contents, cause } = await reading.outcome;
    if (!contents)
      return refuse(
        exposes(settings)
          ? describe(cause)
          : `reading '${uri}' ${status === Status.failed ? "failed" : "gave no contents"}`,
      );
    return copiesOf(contents);
  }

  async function read({ uri: given, since, pointer }: Input, signal: AbortSignal): Promise<Result> {
    const uri = canonical(given);
    const { from, seen } = callerOf(since);
    const before = memories.find(seen, uri, pointer);
    const count = revisions.now();
    // Only of a resource that announces its changes it is known without a read.
    if (before && revisions.knows(uri) && revisions.of(uri) <= before.revision)
      return { revision: memories.revision(seen, from), unchanged: true } as Result;
    const contents = parts(await contentsOf(uri, signal), pointer);
    const text = contents.length === 1 ? contents[0]!.text : undefined;
    // Of other changes, the caller is told as before.
    const untold = memories.news(seen, uri).length > 0;
    const now = { uri, pointer, revision: count, text };
    const revision = memories.revision(seen, untold ? from : count, now);
    if (since === undefined) return { revision, contents };
    if (text !== undefined && text === before?.text) return { revision, unchanged: true } as Result;
    const delta = before && difference(before.text, text);
    const why = before ? "a difference would be longer" : "not read with that revision";
    return { revision, ...(delta || { contents, note: `whole: ${why}` }) };
  }

  async function wait({ uris, since, timeoutMs = maxWait }: Input, signal: AbortSignal): Promise<Result> {
    if (typeof timeoutMs !== "number" || !(timeoutMs >= 0))
      return refuse("'timeoutMs' is not a number of milliseconds");
    const caller = callerOf(since);
    const from = since === undefined ? revisions.now() : caller.from;
    const keys: string[] = [];
    if (uris !== undefined) {
      if (!isArray(uris) || uris.length > maxURIs) return refuse(`'uris' is not an array of at most ${maxURIs}`);
      for (let i = 0; i < uris.length; i++) {
        const key = (keys[i] = canonical(uris[i]));
        if (!entries.has(key) && !revisions.mayAnswer(key)) unknown(key);
      }
    }
    const changes = await waits.wait(keys, from, min(timeoutMs, maxWait), signal);
    return { revision: memories.revision(caller.seen, revisions.now()), ...changes };
  }

  const tools: { [name: string]: (input: Input, signal: AbortSignal) => Result | Promise<Result> } = {
    resources_list: ({ cursor }: Input) => ({
      revision: memories.revision(undefined, revisions.now()),
      ...list(cursor),
    }),
    resources_read: read,
    resources_wait: wait,
  };

  return {
    async answer(name: string, input: unknown, signal: AbortSignal | undefined): Promise<object> {
      const abort: AbortController = new SafeAbortController();
      const stop = () => abort.abort();
      const timer = setTimeout(stop, readTimeout);
      running++;
      try {
        if (running > maxCalls) refuse(`more than ${maxCalls} calls at a time`);
        if (signal) listen(signal, "abort", stop);
        const result = await new SafePromise<Result>((resolve, reject) => {
          listen(abort.signal, "abort", () =>
            reject(new Refusal(`${name} was aborted, or took longer than ${readTimeout / 1000} s`)),
          );
          if (signal?.aborted) return stop(); // only now, since nobody would hear it before
          // Promise.race would call methods that a page may have patched.
          void (async () => {
            try {
              resolve(await tools[name]!((isObject(input) ? input : {}) as Input, abort.signal));
            } catch (cause) {
              reject(cause);
            }
          })();
        });
        if (result.contents && jsonLength(result.contents) > maxResult)
          refuse(`the contents are larger than ${maxResult} characters`);
        return result;
      } catch (cause) {
        return failure(cause instanceof Refusal ? cause.words : `${name} failed: ${(cause as Error | null)?.message}`);
      } finally {
        running--;
        clearTimeout(timer);
        if (signal) unlisten(signal, "abort", stop);
      }
    },
    memories,
    /** The document was frozen: counts everything as changed. */
    thawed(): void {
      revisions.frozen();
      waits.check();
    },
  };
}

/**
 * An answer for its caller. What calls tools by this older interface, such as @mcp-b's relay, passes
 * on MCP's content alone.
 */
export const inMCP = (answer: object): object =>
  "modelContextTesting" in navigator ? { content: [{ type: "text", text: stringify(answer) }], ...answer } : answer;

/** The contents; with a pointer, only the part of each item at the pointer. */
function parts(contents: Item[], pointer: unknown): Item[] {
  if (pointer === undefined) return contents;
  if (typeof pointer !== "string") return refuse("'pointer' is not a string");
  const found: Item[] = [];
  for (let i = 0; i < contents.length; i++)
    found[i] = { ...contents[i]!, text: partOf(contents[i]!.text ?? "", pointer) };
  return found;
}

/** Reads by way of the core, as an agent does. */
async function askCore(open: Open, uri: string, signal: AbortSignal): Promise<Item[]> {
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
  if (signal.aborted) stop(); // while the core was starting
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
