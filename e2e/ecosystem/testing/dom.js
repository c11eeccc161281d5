// The setup of jsdom for a test of node:test.
import { JSDOM } from "jsdom";

const { window } = new JSDOM("", { url: "https://shop.example/" });
for (const name of Object.getOwnPropertyNames(window))
  if (!(name in globalThis)) Object.defineProperty(globalThis, name, { configurable: true, value: window[name] });
