// The manual as a site, which make demo serves at /docs/. The same Markdown is read on a forge: so
// its anchors are a forge's, its order is that of README.md, and what it links to outside of
// demo/docs is on the forge.
import { cpSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { defineConfig } from "vitepress";

const forge = "https://github.com/pagewire/pagewire/blob/main/";
const docs = path.resolve(import.meta.dirname, "..");

/** Groups of README.md with the pages of each. */
const sidebar = [];
for (const line of readFileSync(path.join(docs, "README.md"), "utf8").split("\n")) {
  const group = line.match(/^## (.+)/);
  const page = line.match(/^- \[(.+?)\]\((.+?)\.md\)/);
  if (group) sidebar.push({ text: group[1], items: [] });
  if (page) sidebar.at(-1).items.push({ text: page[1].replaceAll("`", ""), link: `/${page[2]}` });
}
const listed = sidebar.flatMap((group) => group.items.map((item) => `${item.link.slice(1)}.md`));
const written = readdirSync(docs, { recursive: true }).filter(
  (name) => name.endsWith(".md") && !name.includes("node_modules") && name !== "README.md",
);
if (String(listed.sort()) !== String(written.sort()))
  throw new Error(`README.md lists each page once; it lists ${listed}, and there are ${written}`);

/** plainCells makes no header of a cell without text, which is none to a screen reader. */
function plainCells(md) {
  md.core.ruler.push("plain_cells", ({ tokens }) => {
    tokens.forEach(({ type, content }, i) => {
      if (type === "inline" && !content && tokens[i - 1].tag === "th") tokens[i - 1].tag = tokens[i + 1].tag = "td";
    });
  });
}

/**
 * outward leads links that leave demo/docs to the forge, and those to demos to the demos beside the
 * site.
 */
function outward(md) {
  md.core.ruler.push("outward", ({ tokens, env }) => {
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      const href = token.type === "link_open" && token.attrGet("href");
      if (!href || /^(\w+:|#|\/)/.test(href)) continue;
      const target = path.posix.join("demo/docs", path.posix.dirname(env.relativePath), href);
      if (target.startsWith("demo/docs/")) continue;
      const demo = /^demo\/\d+-[^/]+$/.test(target);
      token.attrSet("href", demo ? `/${target}/` : forge + target);
      if (demo) token.attrSet("target", "_self");
    }
  });
}

export default defineConfig({
  title: "Pagewire",
  description: "Live page state for AI agents",
  base: "/docs/",
  outDir: path.resolve(docs, "../../dist/docs"),
  rewrites: { "README.md": "index.md" },
  /**
   * Models read Markdown: each page's lies beside it, and README.md, which lists them all, is
   * llms.txt as well.
   */
  buildEnd({ outDir }) {
    for (const name of ["README.md", ...written]) cpSync(path.join(docs, name), path.join(outDir, name));
    cpSync(path.join(docs, "README.md"), path.join(outDir, "llms.txt"));
  },
  head: [
    ["link", { rel: "icon", href: "data:," }],
    // The theme's own grey has too little contrast.
    ["style", {}, "html:root { --vp-code-lang-color: var(--vp-c-text-2) }"],
  ],
  markdown: {
    anchor: {
      slugify: (text) =>
        text
          .trim()
          .toLowerCase()
          .replace(/[^\p{L}\p{N}\p{M}_\- ]/gu, "")
          .replaceAll(" ", "-"),
    },
    config: (md) => md.use(outward).use(plainCells),
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
    languageAlias: { idl: "ts" },
  },
  themeConfig: {
    nav: [{ text: "Demos", link: "/", target: "_self" }],
    outline: [2, 3],
    search: { provider: "local" },
    sidebar,
    socialLinks: [{ icon: "github", link: "https://github.com/pagewire/pagewire" }],
  },
});
