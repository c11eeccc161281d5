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

  await page.goto("about:blank");
  await assert.rejects(agent.read("/state/cart"), /the page was left/);
} finally {
  await browser.close();
}
