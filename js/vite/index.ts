/**
 * dist/vite.js: the Vite plugin. In development, agents see every store that an app makes, without
 * a line of code in the app. A build contains nothing of it.
 *
 * An import of a library that makes stores leads to a module made here. It exports the same as the
 * library, but pagewire/dev wraps the functions that make stores, and so gets each store. No source
 * is rewritten. Each importer gets a module of its own, which names the stores after the importer.
 */
import { existsSync, statSync } from "node:fs";
import type * as types from "../vite.d.ts";

/** Library to its functions that make stores, each with the function of pagewire/dev that wraps it. */
const libraries: { [name: string]: { [maker: string]: "stores" | "pinia" | "queries" } } = {
  redux: { createStore: "stores", legacy_createStore: "stores" },
  "@reduxjs/toolkit": { configureStore: "stores" },
  zustand: { create: "stores", createStore: "stores", default: "stores" }, // the last up to version 4
  "zustand/vanilla": { createStore: "stores", default: "stores" },
  "zustand/traditional": { createWithEqualityFn: "stores" },
  "svelte/store": { writable: "stores" },
  pinia: { createPinia: "pinia" },
};
for (const flavour of ["signals", "signals-core", "signals-react"])
  libraries[`@preact/${flavour}`] = { signal: "stores" };
for (const flavour of ["query-core", "react-query", "vue-query", "svelte-query", "solid-query"])
  libraries[`@tanstack/${flavour}`] = { QueryClient: "queries" };

const client = "virtual:pagewire";
const variables = /\bprocess\.env\.PAGEWIRE_(GATEWAY|ROOT)\b/g;
/** Rollup's mark of a module without a file. */
const mark = "\0";

/** The members of Vite's server that are used. Vite 5 has no environments. */
interface Server extends Environment {
  readonly ws: Channel & { on(event: string, listener: (data: unknown, page: Channel) => void): void };
  readonly environments?: { readonly client: Environment };
  readonly watcher: { emit(event: "change", file: string): void };
}
interface Environment {
  transformRequest(url: string): Promise<unknown>;
}
/** Sends to one page, or to all. Of Vite's own messages only type "error" has `err`. */
interface Channel {
  send(message: string | { type: string; err: { message: string; id?: string; loc?: object } }, data?: unknown): void;
}

/** Vite's watcher drops a file's change within 50 ms of another: whoever edits fast may mend an error so, in ms. */
const throttled = 100;

const fileOf = (id: string): string => id.replace(/[?#].*/, "");
const nameOf = (importer: string): string => fileOf(importer).replace(/^.*\/|\.\w+$/g, "");
interface Resolver {
  resolve(id: string, importer: string, options: object): Promise<unknown>;
}
/** A module of ours has its importer in its id, as text that no other plugin rewrites. */
const importerOf = (id: string): string => Buffer.from(/&from=([\w-]*)/.exec(id)?.[1] ?? "", "base64url").toString();

const pagewire: typeof types.default = ({ gateway = "ws://127.0.0.1:7433" } = {}) => {
  let base = "/";
  let root = "";
  /** Looks again at the errors of the server. */
  let check = (_gone: boolean, _dropped = false): void => {};
  return {
    name: "pagewire",
    // Vitest serves as well, for tests, whose stores are nobody's.
    apply: (_: unknown, { command }: { command: string }) => command === "serve" && !process.env.VITEST,
    enforce: "pre",
    // Listed from the start: Vite would reload the page when it discovers them.
    config: () => ({ optimizeDeps: { include: ["pagewire", "pagewire/store", "pagewire/dev"] } }),
    configResolved(config: { base: string; root: string }) {
      ({ base, root } = config);
    },
    // A plugin may send no update: Svelte's does not when a module is again as it was before its error.
    handleHotUpdate: () => check(false),
    resolveId(
      this: Resolver | undefined,
      id: string,
      importer: string | undefined,
      options?: { ssr?: boolean; scan?: boolean },
    ) {
      if (id === client) return mark + client;
      // A scan for dependencies has to find the library itself.
      if (!Object.hasOwn(libraries, id) || !importer || options?.ssr || options?.scan) return;
      // In a workspace only the importer's own package may have the library.
      if (importer.startsWith(`${mark}${client}/`)) return this!.resolve(id, importerOf(importer), { skipSelf: true });
      if (importer.startsWith(mark) || importer.includes("/node_modules/")) return;
      return `${mark}${client}/${id}?${nameOf(importer)}&from=${Buffer.from(fileOf(importer)).toString("base64url")}`;
    },
    load(id: string) {
      if (id === mark + client) return `import "pagewire/dev";`;
      if (!id.startsWith(`${mark}${client}/`)) return;
      const [library] = id.slice(client.length + 2).split("?");
      const importer = importerOf(id);
      const makers = Object.entries(libraries[library!]!);
      const from = JSON.stringify(library);
      return [
        `import * as library from ${from};`,
        `import * as pagewire from "pagewire/dev";`,
        // An export by name hides the same name in `export *`, which has no default.
        `export * from ${from};`,
        ...makers.map(
          ([maker, by]) =>
            `const _${maker} = library.${maker} && pagewire.${by}(library.${maker}, ${JSON.stringify(nameOf(importer))}, ${JSON.stringify(importer)});\n` +
            `export { _${maker} as ${maker} };`,
        ),
      ].join("\n");
    },
    // Vite replaces no variables in the packages that it has bundled.
    transform: (code: string) =>
      code.includes("process.env.PAGEWIRE_")
        ? { code: code.replace(variables, (_, of) => JSON.stringify(of === "ROOT" ? root : gateway)), map: null }
        : undefined,
    /**
     * Keeps the errors of the server, by module, until the module is right. Vite sends an error
     * when a page asks for the module, but only to pages that are connected then: a page that is
     * still loading misses it.
     */
    configureServer(server: Server) {
      const { ws } = server;
      const errors = new Map<string, object>();
      /** When a file was changed of which we have told the watcher. */
      const retold = new Map<string, number>();
      const tell = (to: Channel): void => to.send("pagewire:errors", [...errors.values()]);
      // Deletes only this error: a newer one may have come since.
      const mended = (id: string, error: object): boolean => {
        const is = errors.get(id) === error && errors.delete(id);
        if (is) tell(ws);
        return is;
      };
      // Once for each change: an error that only the page's request has would come again for ever.
      const retell = (file: string): void => {
        const at = statSync(file, { throwIfNoEntry: false })?.mtimeMs;
        if (at === undefined || retold.get(file) === at) return;
        retold.set(file, at);
        server.watcher.emit("change", file);
      };
      const send = ws.send.bind(ws);
      ws.send = (message, data) => {
        send(message, data);
        if (typeof message === "string") return;
        const { type, err } = message;
        if (type === "error") {
          errors.set(err.id ?? "", { message: err.message, id: err.id, loc: err.loc });
          tell(ws);
          setTimeout(check, throttled, false, true);
        } else if (type === "update" || type === "full-reload") check(true);
      };
      // Each module: an update need not mend its error, and an error may be of a text that was
      // replaced since.
      check = (gone, dropped) => {
        for (const [id, error] of errors)
          if (existsSync(fileOf(id)))
            (server.environments?.client ?? server).transformRequest(id).then(
              () => mended(id, error) && dropped && retell(fileOf(id)),
              () => {},
            );
          else if (gone) mended(id, error);
      };
      ws.on("pagewire:errors", (_, page) => tell(page));
    },
    transformIndexHtml: {
      // As the last plugin, it puts its script first of all, so that it runs before the app makes a
      // store.
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
