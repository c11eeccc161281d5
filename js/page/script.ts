/**
 * dist/pagewire.js: the script tag. Its data- attributes are the options of `pagewire.configure`.
 *
 * The other files are looked for beside the script. It exports nothing; `globalThis.pagewire` is there when it has run.
 */
import { enter } from "./pagewire.ts";
import type { PagewireOptions } from "../pagewire.d.ts";

// Inline, or injected by an extension, the script has no URL: then the files are looked for beside the page. (Not by
// location: about:srcdoc is no base.)
const script = document.currentScript as HTMLScriptElement | null;
const { exposeErrors, ...rest }: Record<string, string | undefined> = { ...script?.dataset };
enter(script?.src || document.baseURI, {
  ...rest,
  ...(exposeErrors !== undefined && { exposeErrors: exposeErrors !== "false" }),
} as PagewireOptions);
