/**
 * The app that npm_test.go installs the package into: a small shop as anybody would write it, and beside it a stage on
 * which the tests mount the hook as they like, and stores of other libraries.
 */
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Cart } from "./Cart.jsx";
import { Stage } from "./Stage.jsx";
import "./stores.js";

createRoot(document.getElementById("root")).render(
  <StrictMode>
    <Cart />
    <Stage />
  </StrictMode>,
);
