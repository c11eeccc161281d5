import { useSyncExternalStore } from "react";
import { add, cart } from "./cart";

export function Shop() {
  const { items } = useSyncExternalStore(cart.subscribe, cart.getState);
  return (
    <button type="button" id="add" onClick={() => cart.dispatch(add("milk"))}>
      {items.join(", ")}
    </button>
  );
}
