/**
 * dist/vite.js: the Vite plugin. While an app is developed, every store that it makes is offered to agents without a
 * line of its own. A build has nothing of it.
 *
 * An import of a library that makes stores leads to a module made here: all that the library exports, but for the
 * functions that make stores. These make them as before, and hand them to client.ts, which Vite serves from this folder.
 * No source is rewritten. Each importer has a module of its own, which knows the importer's name: the store's name.
 */
import { existsSync, readFileSync } from "node:fs";
import type * as types from "../vite.d.ts";

/** What makes stores, by library, and the function of client.ts that gets it. */
const libraries: { [name: string]: { [maker: string]: "stores" | "pinia" | "queries" } } = {
  redux: { createStore: "stores", legacy_createStore: "stores" },
  "@reduxjs/toolkit": { configureStore: "stores" },
  zustand: { create: "stores", createStore: "stores" },
  "zustand/vanilla": { createStore: "stores" },
  "zustand/traditional": { createWithEqualityFn: "stores" },
  "svelte/store": { writable: "stores" },
  pinia: { createPinia: "pinia" },
};
for (const flavour of ["query-core", "react-query", "vue-query", "svelte-query", "solid-query"])
  libraries[`@tanstack/${flavour}`] = { QueryClient: "queries" };

const client = "virtual:pagewire";
/** Rollup's mark of a module without a file. */
const mark = "\0";

/** What is used of Vite's server. Vite 5 has no environments. */
interface Server extends Environment {
  readonly ws: Channel & { on(event: string, listener: (data: unknown, page: Channel) => void): void };
  readonly environments?: { readonly client: Environment };
}
interface Environment {
  transformRequest(url: string): Promise<unknown>;
}
/** To one page, or to all. Of Vite's own messages those of the type "error" have an error. */
interface Channel {
  send(message: string | { type: string; err: { message: string; id?: string; frame?: string } }, data?: unknown): void;
}

const fileOf = (id: string): string => id.replace(/[?#].*/, "");
const nameOf = (importer: string): string => fileOf(importer).replace(/^.*\/|\.\w+$/g, "");

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
    /**
     * The errors of the server, by module. Vite tells of one when a page asks for the module, to pages that are connected
     * and listen by then: a page that is just being loaded misses it. So they are kept here until the module is right.
     */
    configureServer(server: Server) {
      const { ws } = server;
      const errors = new Map<string, object>();
      const tell = (to: Channel): void => to.send("pagewire:errors", [...errors.values()]);
      // Not of an error that has come since.
      const mended = (id: string, error: object): void => {
        if (errors.get(id) === error && errors.delete(id)) tell(ws);
      };
      const send = ws.send.bind(ws);
      ws.send = (message, data) => {
        send(message, data);
        if (typeof message === "string") return;
        const { type, err } = message;
        if (type === "error") {
          errors.set(err.id ?? "", { message: err.message, file: err.id, frame: err.frame });
          tell(ws);
        } else if (type !== "update" && type !== "full-reload") return;
        // An update need not mend an error, and an error may be of a text that has been replaced meanwhile.
        for (const [id, error] of errors)
          if (existsSync(fileOf(id)))
            (server.environments?.client ?? server).transformRequest(id).then(
              () => mended(id, error),
              () => {},
            );
          else if (type !== "error") mended(id, error);
      };
      ws.on("pagewire:errors", (_, page) => tell(page));
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
