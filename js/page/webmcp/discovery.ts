/**
 * Answers the event `devtoolstooldiscovery` of chrome-devtools-mcp
 * (--categoryExperimentalThirdParty) with the page's tools and Pagewire's own three. The first
 * event loads this file, and may go without an answer: the program waits no longer than the event.
 */
import { apply, error, listen } from "../common/intrinsics.ts";
import type { Early } from "../early/shared.ts";
import type { pageTools } from "../tools/pagetools.ts";

type Tools = ReturnType<typeof pageTools>;

export function discovery({ tooling }: Early, tools: Tools, until: AddEventListenerOptions) {
  let begun = false;

  /** Within the event, so that the answer stands beside that of the page itself. */
  const respond = (event: Event): void => {
    try {
      const { respondWith } = event as Event & { respondWith?: unknown };
      const list = tools.offered();
      if (typeof respondWith !== "function" || !list.length) return;
      const description = "The page's tools and live state. The last revision is the next since.";
      apply(respondWith as never, event, [{ name: "Pagewire", description, tools: list }]);
    } catch (cause) {
      error("pagewire: devtoolstooldiscovery cannot be answered:", cause);
    }
  };

  return async (event: Event): Promise<void> => {
    if (begun) return;
    begun = true;
    listen(globalThis.window, event.type, respond, until);
    const holder = tooling();
    // A use of Pagewire's own context, which thereby gets the three tools.
    if (holder?.getTools) await apply(holder.getTools, holder, []);
    tools.prepare();
    await tools.listed();
    respond(event);
  };
}
