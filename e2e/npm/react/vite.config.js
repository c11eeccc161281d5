import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// Nothing about Pagewire: it needs nothing here.
export default defineConfig({ plugins: [react()] });
