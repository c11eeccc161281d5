import pagewire from "pagewire/vite";
import { defineConfig } from "vite";

// The plugin of the framework, and that of Pagewire.
const { FRAMEWORK: name, GATEWAY: gateway } = process.env;
const { default: framework } = await import(`@vitejs/plugin-${name}`);
export default defineConfig({
  root: name,
  logLevel: "warn",
  plugins: [framework(), ...(gateway === "none" ? [] : [pagewire({ gateway })])],
});
