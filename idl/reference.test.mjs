// The API reference is what the types say, and leaves nothing out.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const check = (directory) =>
  spawnSync(process.execPath, [join(directory, "idl/reference.mjs"), "--check"], { encoding: "utf8" });

/** A copy of what the generator reads and writes, with a file added to the types. */
function copyWith(t, name, text) {
  const copy = mkdtempSync(join(tmpdir(), "pagewire-reference-"));
  t.after(() => rmSync(copy, { recursive: true }));
  mkdirSync(join(copy, "js"));
  mkdirSync(join(copy, "demo/docs"), { recursive: true });
  cpSync(join(root, "idl"), join(copy, "idl"), { recursive: true });
  cpSync(join(root, "demo/docs/api.md"), join(copy, "demo/docs/api.md"));
  for (const file of readdirSync(join(root, "js")))
    if (file.endsWith(".d.ts")) cpSync(join(root, "js", file), join(copy, "js", file));
  cpSync(join(root, "js/package.json"), join(copy, "js/package.json"));
  symlinkSync(join(root, "js/node_modules"), join(copy, "js/node_modules"));
  writeFileSync(join(copy, "js", name), text);
  return copy;
}

test("the API reference is what the types say", () => {
  const { status, stderr } = check(root);
  assert.equal(status, 0, stderr);
});

test("a change of a type makes it stale", (t) => {
  const react = readFileSync(join(root, "js/react.d.ts"), "utf8");
  const { status, stderr } = check(copyWith(t, "react.d.ts", react.replace("read?:", "readAgain?:")));
  assert.equal(status, 1);
  assert.match(stderr, /differs from what the types say: run make generate/);
});

test("a module and a construct without a rule are named", (t) => {
  const other = check(copyWith(t, "other.d.ts", "export const a: 1;"));
  assert.equal(other.status, 2);
  assert.match(other.stderr, /no rule for the module other\.d\.ts/);
  const odd = check(copyWith(t, "view.d.ts", "export enum A { B }"));
  assert.equal(odd.status, 2);
  assert.match(odd.stderr, /no rule for TSEnumDeclaration/);
});

test("each exported name, and each member of the page API, has its place", () => {
  const page = readFileSync(join(root, "demo/docs/api.md"), "utf8");
  for (const file of readdirSync(join(root, "js")).filter((name) => name.endsWith(".d.ts"))) {
    const text = readFileSync(join(root, "js", file), "utf8");
    for (const [, name] of text.matchAll(/^export (?:declare )?(?:interface|type|function|const|class) (\w+)/gm))
      assert.ok(page.includes(`### ${name}\n`), `${file}: ${name}`);
  }
  for (const member of [
    "registerResource",
    "notifyResourceUpdated",
    "portclose",
    "freshState",
    "exposeErrors",
    "uriSchema",
  ])
    assert.ok(page.includes(member), member);
});
