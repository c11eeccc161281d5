import "pagewire/dev";
import { VueQueryPlugin, useQuery } from "@tanstack/vue-query";
import { createPinia, defineStore } from "pinia";
import { createApp, h } from "vue";

const useCart = defineStore("cart", {
  state: () => ({ items: ["tea"], password: "a1b2" }),
  actions: {
    add(item) {
      this.items.push(item);
    },
  },
});
const App = {
  setup() {
    const cart = useCart();
    const { data } = useQuery({ queryKey: ["prices"], queryFn: async () => ({ tea: 3 }) });
    return () => h("button", { onClick: () => cart.add("milk") }, `${cart.items.join(", ")} ${data.value?.tea}`);
  },
};
createApp(App).use(createPinia()).use(VueQueryPlugin).mount("#app");
