/**
 * dist/vite.js: the Vite plugin. While an app is developed, every store that it makes is offered to agents without a
 * line of its own. A build has nothing of it.
 *
 * An import of a library that makes stores leads to a module made here: all that the library exports, but for the
 * functions that make stores. These make them as before, and hand them to client.ts, which Vite serves from this folder.
 * No source is rewritten. Each importer has a module of its own, which knows the importer's name: the store's name.
 */
import { readFileSync } from "node:fs";
import type * as types from "../vite.d.ts";

/** What makes stores, by library, and the function of client.ts that gets it. */
const libraries: { [name: string]: { [maker: string]: "stores" | "pinia" | "queries" } } = {
  redux: { createStore: "stores", legacy_createStore: "stores" },
  "@reduxjs/toolkit": { configureStore: "stores" },
  zustand: { create: "stores", createStore: "stores" },
  "zustand/vanilla": { createStore: "stores" },
  "zustand/traditional": { createWithEqualityFn: "stores" },
  pinia: { createPinia: "pinia" },
};
for (const flavour of ["query-core", "react-query", "vue-query", "svelte-query", "solid-query"])
  libraries[`@tanstack/${flavour}`] = { QueryClient: "queries" };

const client = "virtual:pagewire";
/** Rollup's mark of a module without a file. */
const mark = "\0";

const nameOf = (importer: string): string => importer.replace(/[?#].*/, "").replace(/^.*\/|\.\w+$/g, "");

const pagewire: typeof types.default = ({ gateway = "ws://127.0.0.1:7433" } = {}) => {
  let base = "/";
  return {
    name: "pagewire",
    apply: "serve",
    enforce: "pre",
    // Known from the start, so that Vite does not load the page anew when it meets them.
    config: () => ({ optimizeDeps: { include: ["pagewire", "pagewire/store"] } }),
    configResolved(config: { base: string }) {
      base = config.base;
    },
    resolveId(id: string, importer: string | undefined, options?: { ssr?: boolean; scan?: boolean }) {
      if (id === client) return mark + client;
      // A scan for dependencies has to find the library itself.
      if (!Object.hasOwn(libraries, id) || !importer || options?.ssr || options?.scan) return;
      if (importer.startsWith(mark) || importer.includes("/node_modules/")) return;
      return `${mark}${client}/${id}?${nameOf(importer)}`;
    },
    load(id: string) {
      if (id === mark + client)
        return (
          `const PAGEWIRE_GATEWAY = ${JSON.stringify(gateway)};\n` +
          readFileSync(new URL("./vite.client.js", import.meta.url), "utf8")
        );
      if (!id.startsWith(`${mark}${client}/`)) return;
      const [library, importer] = id.slice(client.length + 2).split("?");
      const makers = Object.entries(libraries[library!]!);
      const from = JSON.stringify(library);
      return [
        `import * as library from ${from};`,
        `import * as pagewire from ${JSON.stringify(client)};`,
        // What is exported by name hides what * exports.
        `export * from ${from};`,
        ...makers.map(
          ([maker, by]) => `export const ${maker} = pagewire.${by}(library.${maker}, ${JSON.stringify(importer)});`,
        ),
      ].join("\n");
    },
    transformIndexHtml: {
      // The last to put its script first: it is there before the app makes a store.
      order: "post",
      handler: () => [
        {
          tag: "script",
          attrs: { type: "module", src: `${base}@id/__x00__${client}` },
          injectTo: "head-prepend" as const,
        },
      ],
    },
  };
};
export default pagewire;
