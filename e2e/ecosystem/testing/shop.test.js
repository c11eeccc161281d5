import { watch } from "pagewire/testing"; // first
import { cart } from "./shop.js";

test("an agent shops", async () => {
  const agent = await watch();
  expect(await agent.list()).toMatchObject([{ name: "Cart", uri: `${location.origin}/state/cart` }]);
  expect(await agent.read("/state/cart")).toBe('{"items":[]}');

  cart.add("tea");
  await agent.updated("/state/cart");
  expect(await agent.read("/state/cart")).toBe('{"items":["tea"]}');

  expect(await agent.tools()).toMatchObject([{ name: "add_to_cart" }]);
  expect(await agent.call("add_to_cart", { sku: "milk" })).toBe("milk is in the cart");
  await agent.updated("/state/cart");
  expect(await agent.read("/state/cart")).toBe('{"items":["tea","milk"]}');
  await expect(agent.call("add_to_cart")).rejects.toThrow("The tool failed.");
  await expect(agent.read("/state/none")).rejects.toThrow("not found");
  await agent.close();
});
