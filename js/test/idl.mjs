// Runs a generator of idl/, on the repository or on a copy of its input and output, for the tests
// of both generators.
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../..", import.meta.url));

/** The result of a generator's check of the files in a directory. */
export const check = (script, directory = root) =>
  spawnSync(process.execPath, [join(directory, "idl", script), "--check"], {
    encoding: "utf8",
    timeout: 240_000,
  });

/** A copy of idl/ and of some more files. */
export function copyOf(t, files) {
  const copy = mkdtempSync(join(tmpdir(), "pagewire-idl-"));
  t.after(() => rmSync(copy, { recursive: true }));
  for (const file of ["idl", "js/package.json", ...files])
    cpSync(join(root, file), join(copy, file), { recursive: true });
  symlinkSync(join(root, "js/node_modules"), join(copy, "js/node_modules"));
  return copy;
}
