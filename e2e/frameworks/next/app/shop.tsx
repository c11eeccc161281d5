"use client";

import { useCart } from "./cart";

export function Shop() {
  const { items, add } = useCart();
  return (
    <button type="button" id="add" onClick={() => add("milk")}>
      {items.join(", ")}
    </button>
  );
}
