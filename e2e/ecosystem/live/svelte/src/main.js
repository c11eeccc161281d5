import { mount } from "svelte";
import App from "./App.svelte";
import "./cart.js"; // and so an edit of it loads the page anew

mount(App, { target: document.getElementById("app") });
