// The API reference agrees with the types, and is complete.
import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { check, copyOf, root } from "../js/test/idl.mjs";

const declarations = readdirSync(join(root, "js")).filter((name) => name.endsWith(".d.ts"));

/** The generator's result with another file of types. */
function checkWith(t, name, text) {
  const copy = copyOf(t, ["demo/docs/api.md", ...declarations.map((file) => `js/${file}`)]);
  writeFileSync(join(copy, "js", name), text);
  return check("reference.mjs", copy);
}

test("the API reference is what the types say", () => {
  const { status, stderr } = check("reference.mjs");
  assert.equal(status, 0, stderr);
});

test("a change of a type makes it stale", (t) => {
  const react = readFileSync(join(root, "js/react.d.ts"), "utf8");
  const { status, stderr } = checkWith(t, "react.d.ts", react.replace("read?:", "readAgain?:"));
  assert.equal(status, 1);
  assert.match(stderr, /differs from what the types say: run make generate/);
});

test("a module and a construct without a rule are named", (t) => {
  const other = checkWith(t, "other.d.ts", "export const a: 1;");
  assert.equal(other.status, 2);
  assert.match(other.stderr, /no rule for the module other\.d\.ts/);
  const odd = checkWith(t, "view.d.ts", "export enum A { B }");
  assert.equal(odd.status, 2);
  assert.match(odd.stderr, /no rule for TSEnumDeclaration/);
});

test("each exported name, and each member of the page API, has its place", () => {
  const page = readFileSync(join(root, "demo/docs/api.md"), "utf8");
  for (const file of declarations) {
    const text = readFileSync(join(root, "js", file), "utf8");
    for (const [, name] of text.matchAll(/^export (?:declare )?(?:interface|type|function|const|class) (\w+)/gm))
      assert.ok(page.includes(`### ${name}\n`), `${file}: ${name}`);
  }
  for (const member of "registerResource notifyResourceUpdated portclose freshState exposeErrors uriSchema".split(" "))
    assert.ok(page.includes(member), member);
});
