/**
 * Three read-only tools, for agents that know tools but not resources. They appear with the page's
 * first resource and go with its last, in any model context that has a registerTool: the browser's
 * own, or a polyfill's.
 *
 * This file only registers them, since every page pays for it. webmcp/resourcetools.ts answers; it
 * comes with pagewire.core.js at the first call, without wasm. The descriptions are for models,
 * within the lengths that Chrome recommends: 30 for a name, 500 for a description, 150 for a
 * parameter's. Nothing here throws into the page.
 */
import { listen, SafeAbortController, warn } from "./intrinsics.ts";
import { shared, type Tooling } from "./shared.ts";

/**
 * The schemas use only keywords of JSON Schema that browsers must accept: type, properties,
 * required, additionalProperties, minimum and maximum.
 */
const text = (description: string) => ({ type: "string", description });
export const since = text("The last `revision`.");
const tools: readonly (readonly [
  name: string,
  description: string,
  properties: object,
  required?: readonly string[],
])[] = [
  ["resources_list", "Lists this page's live resources.", { cursor: text("The nextCursor.") }],
  [
    "resources_read",
    "Reads a resource of this page. With `since`, what has changed.",
    { uri: text("From resources_list."), since, pointer: text("JSON Pointer.") },
    ["uri"],
  ],
  [
    "resources_wait",
    "Waits until resources change: `updated` names them. With `since`, none is missed.",
    {
      uris: { type: "array", description: "Default: all." },
      since,
      timeoutMs: { type: "integer", minimum: 0, maximum: 25_000 },
    },
  ],
];

/**
 * Registers the tools in the model context that `tooling` returns. The result's `populated` is for
 * `shared`.
 */
export function project(
  tooling: () => Tooling | undefined,
  answer: (name: string, input: unknown, signal: AbortSignal | undefined) => Promise<object>,
) {
  /** Name to whether it is registered. */
  let registered: { [name: string]: boolean } = {};
  let stop: AbortController | undefined;

  const register = async (holder: Tooling, index: number, { signal }: AbortController) => {
    const tool = tools[index]!;
    const name = tool[0];
    const names = registered;
    // Firefox's own context, of an older draft, ignores the signal.
    if (!holder.executeTool)
      listen(signal, "abort", () => {
        try {
          if (names[name]) holder.unregisterTool!(name);
        } catch {} // there is no such method, or the page has withdrawn the tool itself
      });
    try {
      registered[name] = true;
      await holder.registerTool(
        {
          name,
          description: tool[1],
          inputSchema: { type: "object", properties: tool[2], required: tool[3], additionalProperties: false },
          annotations: { readOnlyHint: true, untrustedContentHint: true },
          // `await`, as everywhere in this layer: a returned promise would have its `then` looked
          // up.
          execute: async (input: unknown, options?: { signal?: AbortSignal }) =>
            await answer(name, input, options?.signal),
        },
        { signal },
      );
    } catch (cause) {
      if (signal.aborted) return;
      registered[name] = false;
      warn(`pagewire: no tool ${name}: ${cause}`);
    }
  };

  return {
    populated(any: boolean): void {
      if (!any) {
        stop?.abort();
        stop = undefined;
        registered = {};
      } else if (!stop) {
        const holder = tooling();
        // Tried again at each registration, for a polyfill that comes late. Pagewire's own context
        // gets the tools only when it is used, since registering there loads pagewire.core.js.
        if (!holder || holder === shared.unused) return;
        stop = new SafeAbortController();
        for (let i = 0; i < tools.length; i++) void register(holder, i, stop);
      }
    },
    projected: (name: string): boolean => registered[name] === true,
  };
}
