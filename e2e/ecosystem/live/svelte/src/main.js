import { mount } from "svelte";
import App from "./App.svelte";
import "./cart.js"; // so that an edit of it reloads the page

mount(App, { target: document.getElementById("app") });
