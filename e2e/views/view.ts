/**
 * The page of a View: a stock App, and our helper. It reports its content to the parent window, and runs code that the
 * window sends, so that a test can look into a frame of an opaque origin.
 *
 * ?watch=URI&interval=MS watches at once; ?plain makes no App; ?late makes it half a second after the document has
 * loaded.
 */
import { App } from "@modelcontextprotocol/ext-apps";
import { watchResource } from "../../dist/view.js";
import type { ResourceWatch } from "../../js/view.d.ts";

const report = (what: object): void => parent.postMessage({ report: what }, "*");
const query = new URLSearchParams(location.search);

const app = new App({ name: "View", version: "1" }, {}, { autoResize: false });
app.onteardown = () => ({});
const watches: ResourceWatch[] = [];

/** Watches a URI, and reports each text that is shown, with the mode of the watch. */
function watch(uri: string, options: object = {}): ResourceWatch {
  const w: ResourceWatch = watchResource(
    app,
    uri,
    ({ contents }) => report({ shown: contents[0]?.text, uri, mode: w?.mode }),
    options,
  );
  watches.push(w);
  return w;
}

addEventListener("message", async ({ source, data }) => {
  if (source !== parent || !data?.command) return;
  try {
    const run = new Function("app", "watch", "watches", "report", `return (async () => { ${data.body} })()`);
    report({ command: data.command, result: await run(app, watch, watches, report) });
  } catch (error) {
    const { code, message, data: detail } = error as { code?: number; message: string; data?: unknown };
    report({ command: data.command, error: JSON.stringify([code, message, detail]) });
  }
});

if (query.has("late")) await new Promise((done) => addEventListener("load", () => setTimeout(done, 500)));
if (!query.has("plain")) await app.connect();
const uri = query.get("watch");
if (uri)
  watch(uri, {
    interval: Number(query.get("interval") ?? 1000),
    timeout: Number(query.get("timeout") ?? 10_000),
    recheck: Number(query.get("recheck") ?? 30_000),
  });
report({ state: "loaded" });
