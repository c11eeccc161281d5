/**
 * dist/pagewire.inject.js: the page layer as the gateway adds it by CDP to a document that has no Pagewire, before the
 * page's own scripts or, where those have run, behind them. The page sees what it would see of dist/pagewire.js, which
 * may come too. The gateway's attach.js then begins the link.
 */
import { boot } from "../page/pagewire.ts";

// Not in a document that has no origin of its own (a sandboxed frame), or none of the web (the browser's own pages).
if (globalThis.isSecureContext && /^https?:/.test(globalThis.origin)) boot("gateway:/", {});
