// Prints the texts of scripts as JSON, each with its place: literals, templates with … for what is filled in, sums of
// them, and the text of JSX. Types, imports and names of classes, which nobody reads, are left out.
//
//   node scripts.mjs js/page js/late …    folders below the repository's root

import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const root = new URL("../../", import.meta.url);
const { parseSync } = await import(pathToFileURL(createRequire(new URL("js/package.json", root)).resolve("vite")));

const found = [];
/** Members and attributes that are for models or machines. */
const silent = new Set(["description", "inputSchema", "outputSchema", "className", "class", "style", "d", "href"]);

function text(node) {
  switch (node?.type) {
    case "Literal":
      return typeof node.value === "string" ? node.value : undefined;
    case "TemplateLiteral":
      return node.quasis.map((q) => q.value.cooked).join("…");
    case "BinaryExpression": {
      if (node.operator !== "+") return undefined;
      const [left, right] = [text(node.left), text(node.right)];
      return left === undefined && right === undefined ? undefined : `${left ?? "…"}${right ?? "…"}`;
    }
  }
  return undefined;
}

function visit(node, at) {
  if (Array.isArray(node)) {
    for (const one of node) visit(one, at);
    return;
  }
  if (!node || typeof node.type !== "string") return;
  if (
    node.type.startsWith("TS") &&
    !["TSAsExpression", "TSNonNullExpression", "TSSatisfiesExpression"].includes(node.type)
  )
    return;
  if (node.type === "ImportDeclaration") return;
  if (node.type === "Property" && silent.has(node.key.name)) return;
  if (node.type === "JSXAttribute" && silent.has(node.name.name)) return;
  if (node.type === "JSXElement" || node.type === "JSXFragment") {
    // A sentence may have an element or an expression in it.
    const words = node.children.map((c) =>
      c.type === "JSXText" ? c.value : c.type === "JSXExpressionContainer" ? (text(c.expression) ?? "…") : "…",
    );
    found.push({ text: words.join("").replace(/\s+/g, " ").trim(), at: at(node) });
    for (const child of node.children) if (child.type !== "JSXText") visit(child, at);
    visit(node.openingElement?.attributes, at);
    return;
  }
  const said = text(node);
  if (said !== undefined) {
    found.push({ text: said, at: at(node) });
    const inner = (n) =>
      n?.type === "BinaryExpression"
        ? [...inner(n.left), ...inner(n.right)]
        : n?.type === "TemplateLiteral"
          ? n.expressions
          : n?.type === "Literal"
            ? []
            : [n];
    visit(inner(node), at);
    return;
  }
  for (const [key, value] of Object.entries(node)) if (key !== "type" && typeof value === "object") visit(value, at);
}

for (const folder of process.argv.slice(2)) {
  for (const name of readdirSync(new URL(`${folder}/`, root)).sort()) {
    if (!/\.tsx?$/.test(name) || name.endsWith(".d.ts")) continue;
    const source = readFileSync(new URL(`${folder}/${name}`, root), "utf8");
    const { program, errors } = parseSync(name, source);
    if (errors.length) throw new Error(`${folder}/${name}: ${errors[0].message}`);
    visit(program.body, (node) => `${folder}/${name}:${source.slice(0, node.start).split("\n").length}`);
  }
}
console.log(JSON.stringify(found));
