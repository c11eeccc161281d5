// Generates demo/docs/api.md, the reference of every call of a script, from js/*.d.ts:
// js/pagewire.d.ts, which generate.mjs makes of the IDL, and the types of the other modules. Every
// exported or global declaration has its place there. Every member has its line, with its type and
// its doc comment.
//
//   node idl/reference.mjs            writes it
//   node idl/reference.mjs --check    writes nothing; exits 1 if it differs
//
// oxc parses the types, through vite, which is installed anyway: TypeScript 7 has no stable API. A
// construct without a rule ends it with an error, since a declaration left out here would be
// missing in the manual.

import { readdirSync, readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { output, packages, root, unsupported } from "./output.mjs";

const { parseSync } = await import(pathToFileURL(packages.resolve("vite")));

/** The purpose of each module, if its name does not say it. A module without a line here is an error. */
const modules = {
  pagewire:
    "With the script tag, these are globals, and options are attributes such as `data-expose-errors`. Separate the items " +
    "of a list by spaces. Only `configure` takes `freshState` and `navigatingTools`.",
  react: "",
  dev: "For an app in development.",
  extension: "For an extension's service worker: the documents of its tabs.",
  next: "",
  testing: "",
  view: "For Views of MCP Apps.",
  views: "For hosts of MCP Apps.",
  vite: "",
  vue: "",
};
const modulesOfOthers = { store: "", elements: "" };

/**
 * Parts of interfaces, which pagewire.d.ts joins, and types that the module exports by another
 * name.
 */
const otherNames = {
  DocumentWithModelContext: "Document",
  ModelContextResources: "ModelContext",
  PagewireFreshState: "FreshState",
  PagewireMessage: "JSONRPCMessage",
};

/** A type of the DOM, and helpers of other types: no reader looks for them here. */
const unlisted = new Set(["CustomEvent", "ModelContextReadNames", "ModelContextReadParams", "PagewireListener"]);

const plain = (comment) => comment.value.replace(/^\s*\*+ ?/gm, "").trim();

/**
 * Parses a file. Gives its declarations, and functions that find the text and the doc comment of
 * each.
 */
function parse(name) {
  const file = readFileSync(new URL(`js/${name}.d.ts`, root), "utf8");
  const text = file.replace(/\w+/g, (word) => (Object.hasOwn(otherNames, word) ? otherNames[word] : word));
  const { program, comments, errors } = parseSync(`${name}.d.ts`, text, { lang: "dts" });
  if (errors.length) unsupported(`${name}.d.ts: ${errors[0].message}`);
  const source = {
    /** The text of a node in one line. */
    text: (node) =>
      text
        .slice(node.start, node.end)
        .replace(/\/\*[\s\S]*?\*\//g, "")
        .replace(/\s+/g, " ")
        .replace(/\( /g, "(")
        .replace(/,? \)/g, ")")
        .trim(),
    /** The doc comment right before a node. */
    doc(node) {
      const comment = comments.findLast((c) => c.end <= node.start && c.type === "Block" && c.value.startsWith("*"));
      if (!comment || text.slice(comment.end, node.start).match(/\S|\n\s*\n/)) return "";
      return plain(comment);
    },
    /** The module's doc comment: at the file's beginning, with an empty line after it. */
    head: text.startsWith("/**") && /^\n\s*\n/.test(text.slice(comments[0].end)) ? plain(comments[0]) : "",
  };
  return { program, source };
}

const paragraphs = (doc) => (doc ? doc.split(/\n\s*\n/).map((p) => p.replace(/\s*\n\s*/g, " ")) : []);
/** The paragraphs of a doc comment, as lines of Markdown. */
const prose = (doc) => paragraphs(doc).flatMap((p) => [p, ""]);
const oneLine = (doc) => paragraphs(doc).join(" ");
const code = (text) => `\`${text}\``;
/** A type that takes a program to read is in its file alone. */
const short = (text) => (/\binfer\b/.test(text) || (text.startsWith("{") && text.length > 120) ? "…" : text);
/** A type without its ` | undefined`, which every optional member has. */
const type = (text) =>
  text
    .replace(/^:\s*/, "")
    .replace(/(^|: )\|\s*/, "$1")
    .replace(/ \| undefined\b|\breadonly /g, "");

/**
 * The members of an interface: a paragraph for each with a comment, and one for all others. The
 * methods of an EventTarget are one, whatever their overloads.
 */
function members(list, source) {
  const lines = [];
  const plainly = new Map(); // by type
  for (const m of list) {
    let text;
    let of = "";
    switch (m.type) {
      case "TSPropertySignature":
        of = short(type(source.text(m.typeAnnotation)));
        text = `${m.key.name ?? m.key.value}${m.optional ? "?" : ""}`;
        break;
      case "TSMethodSignature": {
        text = type(source.text(m).replace(/(: void)?;?$/, ""));
        const map = text.match(/^addEventListener<K extends keyof (\w+)>/);
        if (map) lines.push(`Its events: ${code(map[1])}`);
        if (/^(add|remove)EventListener\b/.test(text)) continue;
        break;
      }
      default:
        if (m.type !== "TSConstructSignatureDeclaration") unsupported(m.type);
        continue;
    }
    const doc = oneLine(source.doc(m));
    if (doc) lines.push(`${code(of ? `${text}: ${of}` : text)}: ${doc}`);
    else plainly.set(of, [...(plainly.get(of) ?? []), text]);
  }
  const rest = [...plainly].flatMap(([of, names]) => (of ? [code(`${names.join(", ")}: ${of}`)] : names.map(code)));
  if (rest.length) lines.push(rest.join("; "));
  return lines.flatMap((line) => [line, ""]);
}

/** One declaration, as lines of Markdown. */
function declaration(node, outer, source) {
  if (unlisted.has(node.id?.name)) return [];
  const intro = prose(source.doc(outer));
  const title = [`### ${node.id?.name}`, ""];
  switch (node.type) {
    case "TSInterfaceDeclaration": {
      const bases = node.extends.map(source.text).filter((base) => base !== node.id.name);
      const above = bases.map(code).join(", ");
      if (node.body.body.length === 0) return [];
      // another package's class has its own reference
      const body = node.id.name.endsWith("Like") ? [] : members(node.body.body, source);
      return [...title, ...intro, ...prose(above && `Extends ${above}.`), ...body];
    }
    case "TSTypeAliasDeclaration":
      return [...title, ...intro, ...prose(code(short(type(source.text(node.typeAnnotation)))).replace("`…`", ""))];
    case "TSDeclareFunction":
    case "FunctionDeclaration":
      return [...title, code(source.text(node).replace(/^(declare )?function |;$/g, "")), "", ...intro];
    case "VariableDeclaration":
      return node.declarations.flatMap((d) => {
        const of = type(source.text(d.id.typeAnnotation));
        return of.startsWith("{ prototype") ? [] : [`### ${d.id.name}`, "", ...intro, `Type: ${code(of)}`, ""];
      });
    default:
      return unsupported(node.type);
  }
}

/** Joins the parts of one interface, such as those of the IDL and those by hand. */
function merged(list) {
  const out = [];
  for (const lines of list) {
    const before = out.find((other) => other[0] === lines[0]);
    if (before && lines[0]) before.push(...lines.slice(2));
    else if (lines.length) out.push(lines);
  }
  return out.flat();
}

function moduleText(name) {
  const { program, source } = parse(name);
  const about = { ...modules, ...modulesOfOthers }[name] ?? unsupported(`the module ${name}.d.ts: say what it is for`);
  const globals = [];
  const exported = []; // without the globals, which are listed already
  for (const node of program.body) {
    switch (node.type) {
      case "TSModuleDeclaration":
      case "TSGlobalDeclaration":
        if (node.id?.type === "Literal") break; // it joins a part to the types of another package
        for (const inner of node.body.body) globals.push(declaration(inner.declaration ?? inner, inner, source));
        break;
      case "ExportNamedDeclaration":
        if (node.declaration) exported.push(declaration(node.declaration, node, source));
        else if (source.doc(node)) globals.push(["", ...prose(source.doc(node))]);
        break;
      case "ExportDefaultDeclaration":
      case "ImportDeclaration":
        break;
      default:
        exported.push(declaration(node, node, source));
    }
  }
  const title = name === "pagewire" ? "pagewire" : `pagewire/${name === "extension" ? "extension/worker" : name}`;
  const known = new Set(globals.map((lines) => lines[0]));
  return [
    `## ${title}`,
    "",
    about,
    "",
    ...prose(source.head),
    ...merged([...globals, ...exported.filter((e) => !known.has(e[0]))]),
  ];
}

function reference() {
  const names = readdirSync(new URL("js/", root))
    .filter((name) => name.endsWith(".d.ts") && !/^(iife|hosted)\./.test(name))
    .map((name) => name.slice(0, -".d.ts".length));
  names.sort((a, b) => (a === "pagewire" ? -1 : b === "pagewire" ? 1 : a < b ? -1 : 1));
  const text = [
    "<!-- Written by `make generate` from idl/ and js/*.d.ts. Do not edit. -->",
    "",
    "# API reference",
    "",
    "Look up a method, option, event, type or error. [The IDL](../../idl/model-context-resources.idl) has the algorithms.",
    "",
    ...names.flatMap(moduleText),
  ].join("\n");
  return `${text
    .replace(/\n{3,}/g, "\n\n")
    .split("\n")
    .map(wrapped)
    .join("\n")
    .trimEnd()}\n`;
}

/** Prose within the columns of every document. Signatures stay whole. */
function wrapped(line) {
  return /^[#<]|^`[^`]*`$/.test(line) ? line : line.replace(/(.{1,118})(?:\s+|$)/g, "$1\n").trimEnd();
}

output("demo/docs/api.md", reference(), "the types say: run make generate");
