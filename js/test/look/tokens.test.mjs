// One look: every colour is a token, and every custom property that a style sheet uses is set.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";

const root = path.resolve(import.meta.dirname, "../../..");
const tokens = "js/parts/tokens.css";

function* sheets(folder) {
  for (const entry of readdirSync(path.join(root, folder), { withFileTypes: true })) {
    const name = `${folder}/${entry.name}`;
    if (entry.isDirectory() && entry.name !== "node_modules") yield* sheets(name);
    else if (entry.name.endsWith(".css")) yield name;
  }
}

const all = [...sheets("js"), ...sheets("demo")];
const declarations = (name) => [
  ...readFileSync(path.join(root, name), "utf8")
    .replace(/\/\*.*?\*\//gs, "")
    .matchAll(/(?<=[{;]\s*)([\w-]+):\s*([^;{}]+)(?=;|\s*})/g),
];

test("only tokens.css names colours", () => {
  assert.ok(all.includes(tokens) && all.length > 10, `${all}`);
  const literal =
    /#[\da-f]{3,8}\b|\b(rgba?|hsla?|hwb|lab|lch|oklab|oklch|color)\(|\b(white|black|gray|grey|red|green|blue)\b/i;
  const named = (name) =>
    declarations(name).flatMap(([all, , value]) => (literal.test(value.replace(/url\([^)]*\)/g, "")) ? [all] : []));
  for (const name of all) if (name !== tokens) assert.deepEqual(named(name), [], name);
  assert.ok(named(tokens).length > 10);
});

test("each token that a style sheet uses is there", () => {
  const set = new Set(declarations(tokens).map(([, name]) => name));
  for (const name of all)
    for (const [, token] of readFileSync(path.join(root, name), "utf8").matchAll(/var\((--[\w-]+)/g))
      assert.ok(set.has(token), `${name}: ${token}`);
});
