/**
 * The app into which npm_test.go installs the package: an ordinary small shop, and a stage on which the tests mount the
 * hook in many ways.
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
