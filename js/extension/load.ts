/**
 * Replaces js/page/early/load.ts in the extension, which contains the whole page layer: nothing is
 * fetched.
 *
 * The extension serves no agents in the page: that would tell the page that its user has allowed
 * it. But a page may have a Pagewire of its own. Its script finds the extension's page layer
 * installed, and gives it its loader. A core from the page's own files then serves agents in the
 * page, as without the extension, even if the site is not allowed.
 */
import type { CoreOptions, PortCore, PortSource, Start } from "../link/link.ts";
import { arrive } from "../page/late/late.ts";
import { listen, SafePromise } from "../page/early/intrinsics.ts";
import type { CoreSettings, Load } from "../page/early/shared.ts";

/** The base URL of files that no page has. */
export const nowhere = "extension:/";

/** The loader of the page's own Pagewire. */
let own: Load | undefined;
let arrived = (): void => {};

/** Sets the loader of the page's own Pagewire. */
export function setLoader(load: Load): void {
  own = load;
  arrived();
}

// A page without a script of its own may still have set the URL of a core.
const named: Load = ({ core }) => {
  if (core.startsWith(nowhere))
    throw new Error("the page has no Pagewire of its own, and needs it for agents in the page");
  return import(core);
};

const start: Start = async (page: PortSource, options: CoreOptions): Promise<PortCore> => {
  // An agent may come before the page's own Pagewire does.
  if (!own && document.readyState !== "complete")
    await new SafePromise<void>((resolve) => {
      arrived = resolve;
      listen(window, "load", () => resolve());
    });
  const { start } = await (own ?? named)(options as CoreSettings);
  return await start(page, options);
};

export const load: Load = async () => ({ arrive, start });
export const preload = (): void => {};
