/**
 * Builds the app in the working directory by one of the bundlers, as its documents say first and with no setting for
 * Pagewire: node build.mjs TOOL FORMAT ENTRY OUT. OUT is a directory; the result for a page is OUT/index.html.
 */
import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";

const [tool, format, entry, out] = process.argv.slice(2);
const at = { entry: resolve(entry), out: resolve(out) };

/** A page with one script, for the tools that make no page. */
const page = () =>
  writeFileSync(
    `${at.out}/index.html`,
    `<!doctype html><title>app</title><link rel=icon href=data:,><script ${/^es/.test(format) ? "type=module" : ""} src=bundle.js></script>`,
  );

const tools = {
  async esbuild() {
    const { build } = await import("esbuild");
    const [kind, ...conditions] = format.split(",");
    await build({
      entryPoints: [at.entry],
      outfile: `${at.out}/bundle.js`,
      bundle: true,
      logLevel: "warning",
      ...(kind === "node" ? { platform: "node" } : { format: kind }),
      ...(conditions.length > 0 && { conditions }),
    });
    page();
  },
  async rollup() {
    const { rollup } = await import("rollup");
    const { default: nodeResolve } = await import("@rollup/plugin-node-resolve");
    const server = format === "cjs";
    const bundle = await rollup({
      input: at.entry,
      plugins: [nodeResolve(server ? { exportConditions: ["node"] } : { browser: true })],
      onwarn: (warning) => console.error(warning.message),
    });
    await bundle.write({ file: `${at.out}/bundle.js`, format });
    page();
  },
  async webpack() {
    const { default: webpack } = await import("webpack");
    const stats = await new Promise((done, failed) =>
      webpack(
        {
          mode: "production",
          target: format === "node" ? "node" : "web",
          entry: at.entry,
          output: { path: at.out, filename: "bundle.js" },
          performance: false,
        },
        (error, stats) => (error ? failed(error) : done(stats)),
      ),
    );
    if (stats.hasErrors() || stats.hasWarnings()) throw new Error(stats.toString());
    page();
  },
  async vite() {
    const { build } = await import("vite");
    await build({ logLevel: "warn", build: { outDir: at.out, ...(format === "ssr" && { ssr: at.entry }) } });
  },
  async parcel() {
    const { Parcel } = await import("@parcel/core");
    const parcel = new Parcel({
      entries: at.entry,
      defaultConfig: fileURLToPath(import.meta.resolve("@parcel/config-default")),
      defaultTargetOptions: { distDir: at.out },
      cacheDir: `${at.out}-cache`,
      mode: "production",
    });
    await parcel.run();
  },
};
await tools[tool]();
// Parcel's workers would keep the process alive.
process.exit();
