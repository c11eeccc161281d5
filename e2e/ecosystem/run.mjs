/**
 * Runs a bundle of app/server.js in the environment of a server or a test, and prints its findings as JSON: node
 * run.mjs PLACE FILE.
 */
import { readFileSync } from "node:fs";

const [place, file] = process.argv.slice(2);
const script = readFileSync(file, "utf8");

const places = {
  async workerd() {
    const { Miniflare } = await import("miniflare");
    const worker = new Miniflare({
      modules: [
        { type: "ESModule", path: "main.mjs", contents: `${served}import { found } from "./bundle.mjs";` },
        { type: "ESModule", path: "bundle.mjs", contents: script },
      ],
      compatibilityDate: "2026-07-01",
    });
    try {
      return await (await worker.dispatchFetch("http://localhost/")).json();
    } finally {
      await worker.dispose();
    }
  },
  async edge() {
    const { EdgeVM } = await import("@edge-runtime/vm");
    const vm = new EdgeVM();
    vm.evaluate(script);
    return JSON.parse(vm.evaluate("JSON.stringify(found)"));
  },
  async jsdom() {
    const { JSDOM } = await import("jsdom");
    const { window } = new JSDOM("", { runScripts: "outside-only", url: "https://shop.example/" });
    window.eval(script);
    return window.found;
  },
  async "happy-dom"() {
    const { Window } = await import("happy-dom");
    const window = new Window({ url: "https://shop.example/", settings: { enableJavaScriptEvaluation: true } });
    window.eval(script);
    return window.found;
  },
};
const served = "export default { fetch: () => Response.json(found) };";
console.log(JSON.stringify(await places[place]()));
process.exit();
