// The hook where React's types are not installed. It is compiled, never run.
import { useResource } from "pagewire/react";
import type { StandardSchema } from "pagewire/store";

export const useText = (text: string): void => useResource({ uri: "/text", name: "Text" }, text);

declare const schema: StandardSchema<{ items: string[] }>;
export const useCart = (items: string[]): void => useResource({ uri: "/cart", name: "Cart", schema }, { items });
// @ts-expect-error: less than the schema has
export const useNothing = (): void => useResource({ uri: "/cart", name: "Cart", schema }, {});
