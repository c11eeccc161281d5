// A small shop: a cart in a store with subscriptions, and a tool.
import { shareStore } from "pagewire/store";

const listeners = new Set();
let state = { items: [] };
export const cart = {
  getState: () => state,
  subscribe(listener) {
    listeners.add(listener);
    return () => listeners.delete(listener);
  },
  add(sku) {
    state = { items: [...state.items, sku] };
    for (const listener of listeners) listener();
  },
};
shareStore(cart, { uri: "/state/cart", name: "Cart", description: "What the customer will buy" });

navigator.modelContext.registerTool({
  name: "add_to_cart",
  description: "Adds an item to the cart",
  inputSchema: { type: "object", properties: { sku: { type: "string" } }, required: ["sku"] },
  execute({ sku }) {
    if (!sku) throw new Error("no sku");
    cart.add(sku);
    return `${sku} is in the cart`;
  },
});
