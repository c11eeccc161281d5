/**
 * Registers the content scripts, page.js and then relay.js, for the pages where the user wants
 * them. The manifest could not: its scripts run in every page, and pages can see them.
 *
 * The browser keeps registrations when it ends, and forgets them when the extension is updated: the
 * worker calls
 * `registerScripts` whenever it starts.
 */
const everywhere = ["http://*/*", "https://*/*"];

const scripts = (matches: string[]): chrome.scripting.RegisteredContentScript[] =>
  (["MAIN", "ISOLATED"] as const).map((world) => {
    const name = world === "MAIN" ? "page" : "relay";
    return { id: name, js: [`${name}.js`], matches, allFrames: true, runAt: "document_start", world };
  });

/**
 * Firefox's patterns have no ports, and a pattern with a port matches nothing. There the scripts
 * run at all ports.
 */
const hasPorts = !chrome.runtime.getURL("").startsWith("moz-extension:");
const patternOf = (origin: string) => `${hasPorts ? origin : origin.replace(/:\d+$/, "")}/*`;

let last: Promise<void> = Promise.resolve();

/**
 * Registers the scripts for pages of these origins, or for all pages. It counts for pages that load
 * from now on. Each call waits for the call before.
 */
export function registerScripts(origins: readonly string[] | undefined): Promise<void> {
  const wanted = origins ? [...new Set(origins.map(patternOf))] : everywhere;
  last = last.then(() => register(wanted)).catch((cause) => console.error(`pagewire: no content scripts: ${cause}`));
  return last;
}

async function register(matches: string[]): Promise<void> {
  const { scripting } = chrome;
  const registered = await scripting.getRegisteredContentScripts();
  if (!matches.length) return await scripting.unregisterContentScripts();
  // Unlike a new registration, an update leaves no moment without scripts.
  if (registered.length === 2) {
    if (registered.some((script) => `${script.matches}` !== `${matches}`))
      await scripting.updateContentScripts(scripts(matches));
    return;
  }
  if (registered.length) await scripting.unregisterContentScripts();
  // Why does the worker register the extension's content scripts, and not the manifest? A script of
  // the manifest is in every page, and can read no setting before the page's first script. The
  // price: after an update the browser has forgotten the worker's scripts for a moment, and 7 of 8
  // pages that opened with it had none.
  await scripting.registerContentScripts(scripts(matches));
}
