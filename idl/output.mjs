// The output and the errors of both generators. The packages are js/'s; idl/ has none of its own.
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename } from "node:path";

export const root = new URL("../", import.meta.url);
export const packages = createRequire(new URL("js/package.json", root));

/** Ends the run with an error: the source has a construct without a rule. */
export function unsupported(what) {
  console.error(`idl/${basename(process.argv[1])}: no rule for ${what}`);
  process.exit(2);
}

/**
 * Writes a file of the repository. With --check it writes nothing; if the file differs, the run
 * fails and says why.
 */
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
