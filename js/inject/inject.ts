/**
 * dist/pagewire.inject.js: the page layer that the gateway adds by CDP to a document without
 * Pagewire, before the page's own scripts or, if those have run, after them. To the page it looks
 * like dist/pagewire.js, which may come too. The gateway's attach.js then begins the link.
 */
import { boot } from "../page/early/pagewire.ts";

// Not in a document with an opaque origin (a sandboxed frame), nor in the browser's own pages
// (neither http nor https).
if (globalThis.isSecureContext && /^https?:/.test(globalThis.origin)) boot("gateway:/", {});
