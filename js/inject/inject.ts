/**
 * dist/pagewire.inject.js: the page layer as the gateway adds it by CDP to a document that has no Pagewire, before the
 * page's own scripts or, where those have run, behind them. The core is in the gateway.
 *
 * The page sees what it would see of dist/pagewire.js, which does no harm if it comes too. What it also sees is one
 * symbol, by which attach.js of the gateway finds the core's link.
 */
import { boot } from "../page/pagewire.ts";
import { connect } from "./core.ts";

// Not in a document that has no origin of its own (a sandboxed frame), or none of the web (the browser's own pages).
if (globalThis.isSecureContext && /^https?:/.test(globalThis.origin)) {
  const before: unknown = globalThis.pagewire;
  const pagewire = boot("gateway:/", {});
  if (pagewire !== before) {
    const value = (post: (text: string) => void) => {
      const receive = connect(post);
      pagewire.configure({ load: "eager" });
      return receive;
    };
    Object.defineProperty(globalThis, Symbol.for("pagewire.inject"), { configurable: true, value });
  }
}
