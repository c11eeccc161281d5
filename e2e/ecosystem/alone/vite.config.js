import react from "@vitejs/plugin-react";
import vue from "@vitejs/plugin-vue";
import { defineConfig } from "vite";

/** What a bundler that replaces variables in packages does. */
const gateway = {
  name: "gateway",
  transform: (code) => code.replaceAll("process.env.PAGEWIRE_GATEWAY", JSON.stringify("GATEWAY")),
};

// No plugin of Pagewire. Packages of two places share one React.
export default defineConfig({
  plugins: [react(), vue(), gateway],
  resolve: { dedupe: ["react", "react-dom", "vue"] },
  build: { rollupOptions: { input: ["index.html", "vue.html"] } },
});
