import vue from "@vitejs/plugin-vue";
import { defineConfig } from "vite";

// Pagewire needs no setting here.
export default defineConfig({ plugins: [vue()] });
