// A program of a user of Stagehand: it attaches to a running browser, and calls tools of the page
// at a URL. Each line of its input is {"tool", "input"}, or {"script"} for page.evaluate; each line
// of its output is {"said"}, which has the text, or {"failed"}. Without a tool it lists the names.
// It needs no model.
import { createInterface } from "node:readline";
import { localBrowser, Stagehand } from "@browserbasehq/stagehand";

const [cdpUrl, url] = process.argv.slice(2);
const browser = await localBrowser.connect({ cdpUrl });
const stagehand = await Stagehand.create({ browser, logging: { level: "off" } });

async function pageAt() {
  for (const page of await browser.context.pages()) if ((await page.url()).startsWith(url)) return page;
  throw new Error(`no page at ${url}`);
}

async function answer({ tool, input, script }) {
  const page = await pageAt();
  if (script) return JSON.stringify(await page.evaluate(script));
  const tools = await page.tools();
  if (!tool) return JSON.stringify(tools.map(({ name }) => name));
  const found = tools.find(({ name }) => name === tool);
  if (!found) throw new Error(`no tool ${tool}`);
  const { status, output, errorText } = await (await found.invoke({ input })).result({ timeout: 20_000 });
  if (status !== "Completed") throw new Error(`${status}: ${errorText}`);
  return typeof output === "string" ? output : JSON.stringify(output);
}

for await (const line of createInterface({ input: process.stdin })) {
  const said = await answer(JSON.parse(line)).then(
    (said) => ({ said }),
    (cause) => ({ failed: `${cause?.message ?? cause}` }),
  );
  console.log(JSON.stringify(said));
}
await stagehand.close();
await browser.close();
