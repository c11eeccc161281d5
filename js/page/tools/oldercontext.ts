/**
 * Firefox's own model context (its preference dom.modelcontext.enabled): synchronous, on
 * `navigator` alone, no event target, and with unregisterTool in place of a signal. It is
 * recognised by this shape, and not by the browser's name.
 *
 * Its getTools and invokeTool need a second preference, dom.modelcontext.testing.enabled. Without
 * them the page's own tools cannot be served.
 */
import { apply, defineProperty } from "../common/intrinsics.ts";
import { uncurry } from "../early/basics.ts";
import { encode } from "../common/refusal.ts";
import type { RegisteredTool, Tooling } from "../early/shared.ts";

interface Older {
  getTools?(): readonly Omit<RegisteredTool, "window">[];
  invokeTool?(name: string, input: object, options: { signal: AbortSignal }): Promise<unknown>;
}

const { Event, EventTarget } = globalThis;
const { assign, getOwnPropertyDescriptor, getPrototypeOf, hasOwn } = Object;
const dispatch = uncurry(EventTarget.prototype.dispatchEvent);

export function olderContexts() {
  /** The last older context, and its adapter. */
  let last: object | undefined;
  let adapter: (Tooling & EventTarget) | undefined;
  const endings: (() => void)[] = [];

  /** Replaces a method, so that each call of it dispatches a toolchange. */
  function wrap(context: object, name: string): void {
    const owner = hasOwn(context, name) ? context : getPrototypeOf(context);
    const before = getOwnPropertyDescriptor(owner, name)!;
    const { [name]: value } = {
      [name](this: unknown, ...args: unknown[]) {
        const result = apply(before.value, this, args);
        dispatch(adapter!, new Event("toolchange"));
        return result;
      },
    };
    defineProperty(owner, name, { ...before, value });
    endings[endings.length] = () =>
      getOwnPropertyDescriptor(owner, name)?.value === value && defineProperty(owner, name, before);
  }

  return {
    /** A model context of today's draft: the context itself, or the adapter of an older one. */
    adapt(context: Tooling | undefined): Tooling | undefined {
      if (!context || context.executeTool || !context.unregisterTool) return context;
      if (context === last) return adapter;
      const { getTools, invokeTool } = context as object as Older;
      if (!getTools || !invokeTool) return;
      last = context;
      adapter = assign(new EventTarget(), {
        registerTool: context.registerTool,
        async getTools() {
          const tools = apply(getTools, context, []);
          const listed: RegisteredTool[] = [];
          for (let i = 0; i < tools.length; i++) listed[i] = { ...tools[i]!, window: globalThis.window };
          return listed;
        },
        async executeTool({ name }: RegisteredTool, input: object, options: { signal: AbortSignal }) {
          const output = await apply(invokeTool, context, [name, input, options]);
          return encode(output);
        },
      });
      wrap(context, "registerTool");
      wrap(context, "unregisterTool");
      return adapter;
    },
    end(): void {
      for (let i = 0; i < endings.length; i++) endings[i]!();
    },
  };
}
