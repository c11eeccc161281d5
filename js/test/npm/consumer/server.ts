// A server, which has no DOM library. It is compiled, never run.
import pagewire, { type PagewireOptions } from "pagewire";
import "pagewire/elements";
import "pagewire/iife";
import { shareStore } from "pagewire/store";
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
