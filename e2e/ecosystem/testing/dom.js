// What a test of node:test says to have jsdom.
import { JSDOM } from "jsdom";

const { window } = new JSDOM("", { url: "https://shop.example/" });
for (const name of Object.getOwnPropertyNames(window))
  if (!(name in globalThis)) Object.defineProperty(globalThis, name, { configurable: true, value: window[name] });
