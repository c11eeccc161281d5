// A server, which has no DOM library. It is compiled, never run.
import pagewire, { type PagewireOptions } from "pagewire";
import "pagewire/elements";
import "pagewire/iife";
import { resource, type StandardSchema, shareStore } from "pagewire/store";
import { watch } from "pagewire/testing";

const options: PagewireOptions = { load: "idle" };
pagewire.configure(options);
pagewire.addEventListener("coredead", ({ detail }) => detail.reason.length);
const stop: () => void = shareStore(
  { getState: () => ({ items: ["tea"] }), subscribe: () => stop },
  { uri: "/state/cart", name: "Cart", select: ({ items }) => items.length },
);
export const read = async (): Promise<string> => (await watch()).read("/state/cart");
export const shown: ModelContextResource<"https://shop.example/product/{sku}"> = {
  uri: "https://shop.example/product/{sku}",
  name: "Product",
  read: (_uri, { params }) => params.sku,
};

interface Cart {
  items: string[];
}
declare const schema: StandardSchema<Cart>;
export const cart: ModelContextResource<"https://shop.example/cart/{id}"> = resource(schema, {
  uri: "https://shop.example/cart/{id}",
  name: "Cart",
  read: async (_uri, { params }) => ({ items: [params.id] }),
});
// @ts-expect-error: no Cart
resource(schema, { uri: "/state/cart", name: "Cart", read: () => ({ items: [5] }) });
// @ts-expect-error: less than a Cart
resource(schema, { uri: "/state/cart", name: "Cart", read: () => ({}) });
resource(schema, {
  uri: "https://shop.example/{id}",
  name: "Cart",
  // @ts-expect-error: the template has no such variable
  read: (_, { params }) => ({ items: [params.sku] }),
});
// @ts-expect-error: contents, and not a value
resource<Cart>(schema, { uri: "/state/cart", name: "Cart", read: () => JSON.stringify({ items: [] }) });
