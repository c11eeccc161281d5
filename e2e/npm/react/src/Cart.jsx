import { useState } from "react";
import { useResource } from "pagewire/react";

export function Cart() {
  const [items, setItems] = useState(["tea"]);
  useResource({ uri: "/state/cart", name: "Cart", description: "What is in the cart" }, items);
  return (
    <main>
      <h1>Cart</h1>
      <p id="items">{items.join(", ")}</p>
      <button onClick={() => setItems([...items, "milk"])}>Add milk</button>
    </main>
  );
}
