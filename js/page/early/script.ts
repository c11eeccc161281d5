/**
 * dist/pagewire.js: the script tag. Its data- attributes are the options of `pagewire.configure`.
 *
 * It expects the other files in its own folder. It exports nothing; it defines
 * `globalThis.pagewire`.
 */
import { ofDocument } from "./basics.ts";
import { enter } from "./pagewire.ts";
import type { PagewireOptions } from "../../pagewire.d.mts";

// An inline script, or one injected by an extension, has no URL: then the files are expected beside
// the page. (Not by location: about:srcdoc is no base.)
const script = ofDocument("currentScript") as HTMLScriptElement | null;
enter(script?.src || ofDocument("baseURI"), { ...script?.dataset } as PagewireOptions);
