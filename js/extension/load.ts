/**
 * js/page/load.ts of the extension: all of the page layer is there, and nothing is fetched; the core is the extension's.
 *
 * But a page may have a Pagewire of its own, whose script finds ours in its place. What it wants of that (agents in the page, a
 * gateway of its own) must work as without the extension, whether or not that has been allowed: so until the extension begins,
 * such a page's core comes from its own files.
 */
import type { Core, CoreOptions, Page, Start } from "../core/link.ts";
import { start as relayed } from "../inject/core.ts";
import { sessions } from "../page/sessions.ts";
import type { CoreSettings } from "../page/shared.ts";

/** Where the files are that no page has. */
export const nowhere = "extension:/";

/** Whether the extension has a core for the document. */
let begun = false;
/** Ends the core from the page's own files, if it is live. */
let kill = (): void => {};

/** Says whether the extension has a core. The page's own, if there is one, gives way. */
export function begin(on: boolean): void {
  begun = on;
  if (on) kill();
}

/** Looks for the page's own files, and says where they are. */
let adopt = (): void => {};

export function onstart(look: () => void): void {
  adopt = look;
}

const start: Start = async (page: Page, options: CoreOptions): Promise<Core> => {
  adopt();
  const { core: file } = options as CoreSettings;
  if (begun || file.startsWith(nowhere)) return await relayed(page, options);
  const own = (await import(file)) as { start: Start };
  const core = await own.start(page, options);
  kill = () => {
    kill = () => {};
    core.stop();
    page.dead("the extension's takes its place");
  };
  if (begun) kill();
  return core;
};

export const load = async () => ({ sessions, start });
export const preload = (): void => {};
