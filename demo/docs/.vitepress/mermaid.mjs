// Diagrams: a block of mermaid becomes an SVG when the site is built, in the colours of the reader's
// theme. A forge draws the same block by itself. Pages load no script for it.
import { renderMermaidSVG } from "beautiful-mermaid";

/** The renderer's own style has an import of a web font, and a page's template may have no style. */
export const diagramStyle = `.diagram { overflow-x: auto; margin: 16px 0; }
.diagram svg {
  display: block; margin: 0 auto; max-width: max(100%, 440px); height: auto; font-family: var(--vp-font-family-base);
  --_text: var(--vp-c-text-1); --_text-sec: var(--vp-c-text-2); --_text-muted: var(--vp-c-text-2);
  --_line: var(--vp-c-text-3); --_arrow: var(--vp-c-text-2); --_node-fill: var(--vp-c-bg-soft);
  --_node-stroke: var(--vp-c-border); --_group-fill: transparent; --_group-hdr: var(--vp-c-bg-soft);
  --_inner-stroke: var(--vp-c-divider); --_key-badge: var(--vp-c-bg-soft);
}`;

/** A diagram that cannot be drawn fails the build. Its accTitle is what a screen reader says. */
export function diagrams(md) {
  const fence = md.renderer.rules.fence;
  md.renderer.rules.fence = (tokens, i, ...rest) => {
    if (tokens[i].info.trim() !== "mermaid") return fence(tokens, i, ...rest);
    let title = "Diagram";
    const source = tokens[i].content.replace(/^\s*accTitle:\s*(.*)\n/m, (_, text) => {
      title = text;
      return "";
    });
    const look = { bg: "var(--vp-c-bg)", transparent: true, padding: 8, layerSpacing: 24, nodeSpacing: 16 };
    // Its arrow at the start of a line is turned twice.
    const svg = renderMermaidSVG(source, look)
      .replace(/<style>.*?<\/style>/s, "")
      .replace("auto-start-reverse", "auto");
    const label = md.utils.escapeHtml(title);
    return `<div class="diagram" role="img" tabindex="0" aria-label="${label}" v-pre>${svg}</div>\n`;
  };
}
