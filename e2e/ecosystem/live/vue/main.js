import { createPinia } from "pinia";
import { createApp } from "vue";
import Shop from "./Shop.vue";

createApp(Shop).use(createPinia()).mount("#root");
