// The package that npm pack makes of dist/npm, installed by npm without a network, for its consumers: compilers under
// both module resolutions that know `exports`, with and without the types of React and stores, and servers that render.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const modules = here("../../node_modules");
// A program that does not end fails its test, and is not left behind.
const run = (file, args, options) =>
  promisify(execFile)(file, args, { timeout: 240_000, killSignal: "SIGKILL", ...options });

/** A consumer's directory, one with the libraries that the package's modules are for, and one with WebMCP's types. */
let plain, reactive, webmcp;
const others =
  "react react-dom @types/react redux zustand svelte nanostores rxjs @preact/signals-core vue mobx jotai zod valibot @valibot/to-json-schema arktype";

before(async () => {
  plain = await mkdtemp(join(tmpdir(), "pagewire-"));
  await writeFile(join(plain, "package.json"), `{"private": true, "type": "module"}`);
  await run("npm", ["pack", "--pack-destination", plain], { cwd: here("../../../dist/npm") });
  const packed = (await readdir(plain)).find((name) => name.endsWith(".tgz"));
  await run("npm", ["install", "--offline", "--no-audit", "--no-fund", packed], { cwd: plain });
  await cp(here("consumer"), plain, { recursive: true });
  const consumer = async (suffix, packages) => {
    const dir = plain + suffix;
    await cp(plain, dir, { recursive: true });
    for (const name of packages.split(" ")) {
      await mkdir(dirname(join(dir, "node_modules", name)), { recursive: true });
      await symlink(join(modules, name), join(dir, "node_modules", name));
    }
    return dir;
  };
  reactive = await consumer("-react", others);
  webmcp = await consumer("-webmcp", "webmcp-types @mcp-b/webmcp-types react @types/react vue");
});

after(() => Promise.all([plain, reactive, webmcp].map((dir) => rm(dir, { recursive: true, force: true }))));

test("installing it installs nothing else", async () => {
  assert.deepEqual(
    (await readdir(join(plain, "node_modules"))).filter((name) => name[0] !== "."),
    ["pagewire"],
  );
});

test("modules for bundlers are readable, and each has its map, which has its sources", async () => {
  for (const name of ["react", "store", "vue", "testing", "vite", "next", "dev"]) {
    const file = join(plain, "node_modules/pagewire", `${name}.js`);
    const text = await readFile(file, "utf8");
    assert.ok(text.split("\n").length > text.length / 80, `${name}.js is not made small`);
    assert.match(text, new RegExp(`//# sourceMappingURL=${name}.js.map\\s*$`));
    const { sources, sourcesContent } = JSON.parse(await readFile(`${file}.map`, "utf8"));
    assert.ok(sources.length > 0 && sources.length === sourcesContent.length, name);
  }
});

/** Compiles files in dir, strictly, the package's declarations included. */
const compile = (dir, resolution, file, lib = "es2022", ...options) =>
  run(
    join(modules, ".bin/tsc"),
    [
      ..."--noEmit --strict --exactOptionalPropertyTypes --target es2022 --jsx react-jsx --lib".split(" "),
      file === "server.ts" ? lib : `${lib},dom,dom.iterable`,
      ...["--types", options.includes("--typeRoots") ? "node" : "", "--moduleResolution", resolution],
      ...["--module", resolution === "node16" ? "node16" : "esnext", ...options, file],
    ],
    { cwd: dir },
  ).catch(({ stdout, stderr }) => assert.fail(stdout + stderr));

for (const resolution of ["node16", "bundler"]) {
  for (const file of ["plain.ts", "hook.ts", "server.ts"])
    for (const options of [[], ["--skipLibCheck"], ["--typeRoots", join(modules, "@types")]])
      test(`${file} compiles under ${resolution} without React's types ${options[0] ?? ""}`, () =>
        compile(plain, resolution, file, "es2022", ...options));
  test(`it compiles under ${resolution} with React's types`, () => compile(reactive, resolution, "component.tsx"));
  // MobX's own types need esnext, and arktype's those of Node.
  test(`stores of each library compile under ${resolution}`, () =>
    compile(reactive, resolution, "store.ts", "esnext", "--typeRoots", join(modules, "@types")));
}

/** Uses of the page API that compile beside any other types of WebMCP. */
const uses = `
  const uri = location.origin + "/state";
  const state = { uri, name: "State", read: () => "text" };
  navigator.modelContext.registerResource(state, { signal: AbortSignal.timeout(1) });
  navigator.modelContext.notifyResourceUpdated(uri);
  navigator.modelContext.addEventListener("resourceupdated", ({ detail }) => detail.uri.length);
  navigator.modelContext.registerTool({ name: "add", description: "Adds", execute: ({ sku }) => sku });
  document.modelContext?.registerResource(state);
  document.modelContext?.unregisterResource(uri);
  document.modelContext?.registerTool({ name: "add", description: "Adds", execute: ({ sku }) => sku });
  // @ts-expect-error: no read
  document.modelContext?.registerResource({ uri, name: "State" });
  // @ts-expect-error: no name
  navigator.modelContext.registerResource({ uri, read: () => "text" });
  pagewire.configure({ load: "idle" });
`;
const alone = `document.modelContext.registerResource(state);
  document.modelContext.addEventListener("resourceupdated", ({ detail }) => detail.uri.length);`;
// What webmcp-types has of its own stays: methods, and the type of a tool's input.
const withWebMCP = `document.modelContext?.getTools().then(([tool]) => tool?.origin.length);
  document.modelContext?.addEventListener("resourceupdated", ({ detail }) => detail.uri.length);
  const inputSchema = { type: "object", properties: { sku: { type: "string" } }, required: ["sku"] } as const;
  document.modelContext?.registerTool({ name: "a", description: "b", inputSchema, execute: ({ sku }) => sku.at(0) });
  export const tool: WebMCP.ModelContextTool = { name: "a", description: "b", execute: () => 1 };`;

const imports = (name) => `import type {} from "${name}";`;
const references = (name) => `/// <reference types="${name}" />`;
const subpaths = "/iife /react /store /vue /elements /testing /view /views /dev /next /extension/worker /core /wasm";
/** Packages in the order of import; the ways to import them; further uses; whether it compiles without skipLibCheck. */
const besides = [
  ["pagewire", [imports, references], alone, true],
  ["pagewire/iife", [imports], alone, true],
  ["pagewire webmcp-types", [imports, references], withWebMCP, true],
  ["webmcp-types pagewire", [imports, references], withWebMCP, true],
  ["webmcp-types pagewire/iife", [imports], withWebMCP, true],
  ["pagewire/store webmcp-types", [imports], withWebMCP, true],
  // In Vue's own types errors show without skipLibCheck.
  [`webmcp-types ${subpaths.replace(/\//, "pagewire/").replaceAll(" /", " pagewire/")}`, [imports], withWebMCP, false],
  // This one does not compile alone without skipLibCheck.
  ["pagewire @mcp-b/webmcp-types", [imports, references], "", false],
  ["@mcp-b/webmcp-types pagewire", [imports, references], "", false],
  ["@mcp-b/webmcp-types pagewire webmcp-types", [imports], "", false],
];
let number = 0;
for (const [packages, ways, more, strict] of besides)
  for (const way of ways)
    for (const resolution of ["node16", "bundler"])
      for (const options of strict ? [[], ["--skipLibCheck"]] : [["--skipLibCheck"]])
        test(`types beside others: ${[way.name, packages, resolution, ...options].join(" ")}`, async () => {
          const file = `beside${number++}.ts`;
          const first = packages.split(" ").map(way).join("\n");
          await writeFile(join(webmcp, file), `${first}\n${uses}\n${more}\nexport {};\n`);
          await compile(webmcp, resolution, file, "es2022", ...options);
        });

test("a server renders components with the hook and the composable beside a store, and gets no page API", async () => {
  const script = `
    import { createElement } from "react";
    import { renderToString } from "react-dom/server";
    import { useResource } from "pagewire/react";
    import { createSSRApp, h, ref } from "vue";
    import { renderToString as renderVue } from "vue/server-renderer";
    import { shareStore } from "pagewire/store";
    import { useResource as useInVue } from "pagewire/vue";
    import "pagewire/elements";
    const store = { get: () => [], subscribe() { throw new Error("subscribed on a server") } };
    shareStore(store, { uri: "/state/cart", name: "Cart" })();
    function Cart() {
      useResource({ uri: "/state/cart", name: "Cart", read: () => { throw new Error("read on a server") } }, ["tea"]);
      return createElement("p", null, "tea");
    }
    const Vue = createSSRApp({ setup() { useInVue({ uri: "/state/cart", name: "Cart" }, ref(["tea"])); return () => h("b", "tea"); } });
    console.log(renderToString(createElement(Cart)), await renderVue(Vue), typeof document, "modelContext" in navigator);
  `;
  // Node 20 has no navigator; later versions have one.
  const { stdout, stderr } = await run(
    process.execPath,
    ["--input-type=module", "-e", "globalThis.navigator ??= {};" + script],
    { cwd: reactive },
  );
  assert.deepEqual([stdout, stderr], ["<p>tea</p> <b>tea</b> undefined false\n", ""]);
});
