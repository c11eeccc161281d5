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

/** A consumer's directory, and another one with the libraries that the package's modules are for. */
let plain, reactive;
const others =
  "react react-dom @types/react redux zustand svelte nanostores rxjs @preact/signals-core vue mobx jotai zod valibot @valibot/to-json-schema arktype";

before(async () => {
  plain = await mkdtemp(join(tmpdir(), "pagewire-"));
  await writeFile(join(plain, "package.json"), `{"private": true, "type": "module"}`);
  await run("npm", ["pack", "--pack-destination", plain], { cwd: here("../../../dist/npm") });
  const packed = (await readdir(plain)).find((name) => name.endsWith(".tgz"));
  await run("npm", ["install", "--offline", "--no-audit", "--no-fund", packed], { cwd: plain });
  await cp(here("consumer"), plain, { recursive: true });
  reactive = plain + "-react";
  await cp(plain, reactive, { recursive: true });
  for (const name of others.split(" ")) {
    await mkdir(dirname(join(reactive, "node_modules", name)), { recursive: true });
    await symlink(join(modules, name), join(reactive, "node_modules", name));
  }
});

after(() => Promise.all([plain, reactive].map((dir) => rm(dir, { recursive: true, force: true }))));

test("installing it installs nothing else", async () => {
  assert.deepEqual(
    (await readdir(join(plain, "node_modules"))).filter((name) => name[0] !== "."),
    ["pagewire"],
  );
});

test("modules for bundlers are readable, and each has its map, which has its sources", async () => {
  for (const name of ["react", "store", "vue", "testing", "vite", "vite.client"]) {
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
