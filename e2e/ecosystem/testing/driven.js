// The shop in a browser that Playwright or Puppeteer drives: node driven.js DRIVER BROWSER URL.
import assert from "node:assert/strict";
import { watch } from "pagewire/testing";

const [driver, executablePath, url] = process.argv.slice(2);
const { chromium, default: puppeteer } = await import(driver);
const browser = await (chromium ?? puppeteer).launch({ executablePath, args: ["--no-sandbox"] });
try {
  const page = await browser.newPage();
  await assert.rejects(watch(page), /the page has no Pagewire/);
  await page.goto(url);

  const agent = await watch(page);
  assert.equal((await agent.list())[0].name, "Cart");
  assert.equal(await agent.read("/state/cart"), '{"items":[]}');
  await page.click("button");
  await agent.updated("/state/cart", { timeout: 30_000 });
  assert.equal(await agent.read("/state/cart"), '{"items":["tea"]}');
  assert.equal(await agent.call("add_to_cart", { sku: "milk" }), "milk is in the cart");

  // For a test that runs in a browser: no other Pagewire is in this document.
  await page.goto(`${url}/package.json`);
  const inside = `(async () => {
    const { watch } = await import("/node_modules/pagewire/testing.js");
    navigator.modelContext.registerResource({ uri: location.origin + "/state", name: "State", read: () => "text" });
    return (await watch()).read("/state");
  })()`;
  assert.equal(await page.evaluate(inside), "text");

  await assert.rejects(agent.read("/state/cart"), /the page was left/);
} finally {
  await browser.close();
}
