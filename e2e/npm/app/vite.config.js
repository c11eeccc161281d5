import react from "@vitejs/plugin-react";
import { compileModule } from "svelte/compiler";
import { defineConfig } from "vite";

/** What is used of Svelte's own plugin: runes in a module, and that Vite knows beforehand what they import. */
const svelte = {
  name: "svelte",
  config: () => ({ optimizeDeps: { include: ["svelte/internal/client"] } }),
  transform: (code, filename) => (filename.endsWith(".svelte.js") ? compileModule(code, { filename }).js : null),
};

// Nothing about Pagewire: it needs nothing here.
export default defineConfig({ plugins: [react(), svelte] });
