import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// Pagewire needs no setting here.
export default defineConfig({ plugins: [react()] });
