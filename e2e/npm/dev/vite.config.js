import react from "@vitejs/plugin-react";
import vue from "@vitejs/plugin-vue";
import pagewire from "pagewire/vite";
import { compile } from "svelte/compiler";
import { defineConfig } from "vite";

/** What Svelte's own plugin does in development, as far as this app needs it. */
const svelte = {
  name: "svelte",
  transform: (code, id) => (id.endsWith(".svelte") ? compile(code, { filename: id, dev: true }).js : undefined),
};

export default defineConfig({
  plugins: [pagewire({ gateway: "GATEWAY" }), react(), vue(), svelte],
  // All are listed, since Vite reloads the page when it discovers one.
  optimizeDeps: {
    noDiscovery: true,
    include: [
      ...["react", "react/jsx-dev-runtime", "react-dom/client", "vue", "svelte", "svelte/internal/client"],
      ...["svelte/internal/disclose-version", "svelte/internal/flags/legacy"],
    ],
  },
});
