/**
 * In which pages the content scripts are: page.js, and relay.js behind it. They are registered by the worker and not by
 * the manifest, whose scripts are in every page whatever the user wants, and can be seen there.
 *
 * The browser keeps what is registered when it ends, and forgets it when the extension is updated: `place` is called
 * whenever the worker starts.
 */
const everywhere = ["http://*/*", "https://*/*"];

const scripts = (matches: readonly string[]): chrome.scripting.ContentScript[] =>
  (["MAIN", "ISOLATED"] as const).map((world) => {
    const name = world === "MAIN" ? "page" : "relay";
    return { id: name, js: [`${name}.js`], matches, allFrames: true, runAt: "document_start", world };
  });

/** Firefox's patterns have no ports, and one with a port matches nothing: there the scripts are at all of a host's. */
const hasPorts = !chrome.runtime.getURL("").startsWith("moz-extension:");
const patternOf = (origin: string) => `${hasPorts ? origin : origin.replace(/:\d+$/, "")}/*`;

let last: Promise<void> = Promise.resolve();

/**
 * Has the scripts in pages of these origins that are loaded from now on, or in all pages. Resolves when that is so.
 * One call waits for the one before.
 */
export function place(origins: readonly string[] | undefined): Promise<void> {
  const wanted = origins ? [...new Set(origins.map(patternOf))] : everywhere;
  last = last.then(() => register(wanted)).catch((cause) => console.error(`pagewire: no content scripts: ${cause}`));
  return last;
}

async function register(matches: readonly string[]): Promise<void> {
  const { scripting } = chrome;
  const there = await scripting.getRegisteredContentScripts();
  if (!matches.length) return await scripting.unregisterContentScripts();
  // An update leaves no moment without any.
  if (there.length === 2) {
    if (there.some((script) => `${script.matches}` !== `${matches}`))
      await scripting.updateContentScripts(scripts(matches));
    return;
  }
  if (there.length) await scripting.unregisterContentScripts();
  await scripting.registerContentScripts(scripts(matches));
}
