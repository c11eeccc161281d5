/**
 * js/page/load.ts of the extension: all of the page layer is there, and nothing is fetched.
 *
 * Agents in the page are not the extension's: it would tell the page by them that its user has allowed it. But a page
 * may have a Pagewire of its own, whose script finds ours in its place. What it wants of that works as without the
 * extension, whether or not that has been allowed: such a page's core comes from its own files.
 */
import type { CoreOptions, PortCore, PortSource, Start } from "../link/link.ts";
import { arrive } from "../late/late.ts";
import type { CoreSettings } from "../page/shared.ts";

/** Where the files are that no page has. */
export const nowhere = "extension:/";

/** Looks for the page's own files, and says where they are. */
let adopt = (): void => {};

export function onstart(look: () => void): void {
  adopt = look;
}

const start: Start = async (page: PortSource, options: CoreOptions): Promise<PortCore> => {
  adopt();
  const { core } = options as CoreSettings;
  if (core.startsWith(nowhere))
    throw new Error("the page has no Pagewire of its own, and needs it for agents in the page");
  const own = (await import(core)) as { start: Start };
  return await own.start(page, options);
};

export const load = async () => ({ arrive, start });
export const preload = (): void => {};
