// The manual's example for Playwright.
import { test as base, expect } from "@playwright/test";
import { watch } from "pagewire/testing";

const test = base.extend({
  agent: async ({ page }, use) => {
    await page.goto("/");
    await use(await watch(page));
  },
});

test("an agent sees what a person does", async ({ page, agent }) => {
  expect(await agent.read("/state/cart")).toBe('{"items":[]}');
  await page.getByRole("button", { name: "Add tea" }).click();
  await agent.updated("/state/cart", { timeout: 30_000 });
  expect(await agent.read("/state/cart")).toBe('{"items":["tea"]}');
});
