// The manual as a site, which make demo serves at /docs/, and a workflow publishes at SITE_BASE. The
// same Markdown is read on a forge: so its anchors are a forge's, its order is that of README.md,
// and what it links to outside of demo/docs is on the forge.
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { defineConfig } from "vitepress";
import { diagramStyle, diagrams } from "./mermaid.mjs";

const repository = "https://github.com/pagewire/pagewire";
const forge = `${repository}/blob/main/`;
const docs = path.resolve(import.meta.dirname, "..");
const hosted = process.env.SITE_BASE;
const { version } = JSON.parse(readFileSync(path.join(docs, "../../js/package.json"), "utf8"));

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

/** away is where a link leads that leaves demo/docs; undefined if it does not. */
function away(href) {
  if (/^(\w+:|#|\/)/.test(href)) return;
  const target = path.posix.join("demo/docs", href);
  return target.startsWith("demo/docs/") ? undefined : target;
}

/** outward leads such links to the forge, and those to demos to the demos beside the site. */
function outward(md) {
  md.core.ruler.push("outward", ({ tokens }) => {
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      const target = token.type === "link_open" && away(token.attrGet("href"));
      if (!target) continue;
      const demo = !hosted && /^demo\/\d+-[^/]+$/.test(target);
      token.attrSet("href", demo ? `/${target}/` : forge + target);
      if (demo) token.attrSet("target", "_self");
    }
  });
}

export default defineConfig({
  title: "Pagewire",
  description: "Live page state for AI agents",
  base: hosted ?? "/docs/",
  outDir: path.resolve(docs, "../../dist/docs"),
  rewrites: { "README.md": "index.md" },
  /**
   * Models read Markdown: each page's lies beside it, and README.md, which lists them all, is
   * llms.txt as well.
   */
  buildEnd({ outDir }) {
    copyFileSync(path.resolve(docs, "../../js/parts/logo.svg"), path.join(outDir, "logo.svg"));
    for (const [name, to = name] of [["README.md", "llms.txt"], ["README.md"], ...written.map((name) => [name])]) {
      const text = readFileSync(path.join(docs, name), "utf8");
      const links = (all, before, href) => (away(href) ? before + forge + away(href) : all);
      writeFileSync(path.join(outDir, to), text.replace(/(\]\(|src="|srcset=")([^)"\s]+)/g, links));
    }
  },
  /** The references are generated: nobody edits them there. */
  transformPageData(page) {
    if (/^(api|cli)\.md$/.test(page.filePath)) page.frontmatter.editLink = false;
  },
  head: [
    ["link", { rel: "icon", href: `${hosted ?? "/docs/"}logo.svg` }],
    ["style", {}, diagramStyle],
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
    config: (md) => md.use(outward).use(plainCells).use(diagrams),
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
    languageAlias: { idl: "ts" },
  },
  themeConfig: {
    logo: "/logo.svg",
    nav: [
      hosted ? { text: "Demos", link: `${repository}/tree/main/demo` } : { text: "Demos", link: "/", target: "_self" },
      { text: `v${version}`, link: `${forge}CHANGELOG.md` },
    ],
    editLink: { pattern: `${repository}/edit/main/demo/docs/:path` },
    outline: [2, 3],
    search: { provider: "local" },
    sidebar,
    socialLinks: [{ icon: "github", link: repository }],
  },
});
