// The shop in node:test, with jsdom.
import assert from "node:assert/strict";
import { test } from "node:test";
import "./dom.js"; // first
import { watch } from "pagewire/testing";
import { cart } from "./shop.js";

test("an agent is told of what it has read", async () => {
  const agent = await watch();
  await assert.rejects(agent.updated("/state/cart"), /was not read/);
  assert.equal(await agent.read("/state/cart"), '{"items":[]}');
  await assert.rejects(agent.updated("/state/cart", { timeout: 10 }), /was not announced within 10 ms/);
  cart.add("tea");
  await agent.updated("/state/cart");
  assert.equal(await agent.read("/state/cart"), '{"items":["tea"]}');

  const other = await watch();
  await agent.close();
  await assert.rejects(agent.read("/state/cart"), /closed/);
  assert.equal(await other.read("/state/cart"), '{"items":["tea"]}');
  // The agent is not closed, and yet nothing keeps the process alive.
  assert.ok(!process.getActiveResourcesInfo().includes("Timeout"));
});
