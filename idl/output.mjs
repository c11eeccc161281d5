// What both generators do with what they have made. The packages are js/'s; idl/ has none of its own.
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename } from "node:path";

export const root = new URL("../", import.meta.url);
export const packages = createRequire(new URL("js/package.json", root));

/** Ends the run: the source says something that there is no rule for. */
export function unsupported(what) {
  console.error(`idl/${basename(process.argv[1])}: no rule for ${what}`);
  process.exit(2);
}

/** Writes a file of the repository; with --check it writes nothing, and the run fails with `differs` if the file differs. */
export function output(name, expected, differs) {
  const file = new URL(name, root);
  if (!process.argv.includes("--check")) return writeFileSync(file, expected);
  let actual;
  try {
    actual = readFileSync(file, "utf8");
  } catch {}
  if (actual === expected) return;
  process.exitCode = 1;
  console.error(`${name} differs from what ${differs}`);
}
