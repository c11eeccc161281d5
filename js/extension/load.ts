/**
 * js/page/load.ts of the extension: all of the page layer is there, and nothing is fetched.
 *
 * Agents in the page are not the extension's: it would tell the page by them that its user has allowed it. But a page
 * may have a Pagewire of its own, whose script finds ours in its place and hands over how its core is loaded. What it
 * wants of that works as without the extension, whether or not that has been allowed: such a page's core comes from its
 * own files.
 */
import type { CoreOptions, PortCore, PortSource, Start } from "../link/link.ts";
import { arrive } from "../late/late.ts";
import { listen, SafePromise } from "../page/intrinsics.ts";
import type { CoreSettings, Load } from "../page/shared.ts";

/** Where the files are that no page has. */
export const nowhere = "extension:/";

/** The page's own. */
let own: Load | undefined;
let come = (): void => {};

/** Has agents in the page be served by the core that `load` imports. */
export function serveBy(load: Load): void {
  own = load;
  come();
}

// A page without a script of its own may still have said where a core is.
const named: Load = ({ core }) => {
  if (core.startsWith(nowhere))
    throw new Error("the page has no Pagewire of its own, and needs it for agents in the page");
  return import(core);
};

const start: Start = async (page: PortSource, options: CoreOptions): Promise<PortCore> => {
  // An agent may come before the page's own Pagewire does.
  if (!own && document.readyState !== "complete")
    await new SafePromise<void>((resolve) => {
      come = resolve;
      listen(window, "load", () => resolve());
    });
  const { start } = await (own ?? named)(options as CoreSettings);
  return await start(page, options);
};

export const load: Load = async () => ({ arrive, start });
export const preload = (): void => {};
