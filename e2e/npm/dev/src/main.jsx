/** The app of picker_test.go: the same list in three frameworks. */
import { createRoot } from "react-dom/client";
import { mount } from "svelte";
import { createApp } from "vue";
import { Hello } from "./Hello.jsx";
import Svelte from "./Hello.svelte";
import Vue from "./Hello.vue";

createRoot(document.getElementById("react")).render(<Hello />);
createApp(Vue).mount("#vue");
mount(Svelte, { target: document.getElementById("svelte") });
