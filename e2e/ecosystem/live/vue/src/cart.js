import { defineStore } from "pinia";

export const useCart = defineStore("cart", {
  state: () => ({ items: ["tea"] }),
  actions: {
    add(item) {
      this.items.push(item);
      history.pushState(null, "", "/paid");
    },
  },
});
