/** A small shop as anybody would write it, and beside it what the tests call the composable with. */
import * as vue from "vue";
import { useResource } from "pagewire/vue";
import Cart from "./Cart.vue";

const app = vue.createApp(Cart);
app.mount("#root");
globalThis.stage = { ...vue, useResource, app };
