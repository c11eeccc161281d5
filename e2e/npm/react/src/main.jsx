/**
 * The app that npm_test.go installs the package into: a small shop as anybody would write it, and beside it a stage on
 * which the tests mount the hook as they like.
 */
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Cart } from "./Cart.jsx";
import { Stage } from "./Stage.jsx";

createRoot(document.getElementById("root")).render(
  <StrictMode>
    <Cart />
    <Stage />
  </StrictMode>,
);
