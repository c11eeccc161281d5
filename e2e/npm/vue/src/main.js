/** An ordinary small shop, and the functions with which the tests call the composable. */
import * as vue from "vue";
import { useResource } from "pagewire/vue";
import Cart from "./Cart.vue";

const app = vue.createApp(Cart);
app.mount("#root");
globalThis.stage = { ...vue, useResource, app };
