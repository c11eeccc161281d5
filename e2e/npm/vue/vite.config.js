import vue from "@vitejs/plugin-vue";
import { defineConfig } from "vite";

// Nothing about Pagewire: it needs nothing here.
export default defineConfig({ plugins: [vue()] });
