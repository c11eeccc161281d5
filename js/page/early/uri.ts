/**
 * Checks the URIs of resources, and makes the canonical form that the registry, the core and agents
 * use.
 *
 * The algorithm is "the canonical form of a uri" of the IDL. The browser's own parser decides what
 * a URI is; nothing here second-guesses it, and the core only compares the results.
 */
import { ofDocument } from "./basics.ts";
import { fail } from "./convert.ts";
import { exception, exec, SafeURL, slice } from "./intrinsics.ts";

export const maxURI = 8192;

/**
 * The rest of a template, after its literal start: variables with text between them, then perhaps a
 * query. The grammar is that of bridge/resource/template.go. Characters that a URI cannot hold are
 * refused, not encoded: agents encode them in an expansion, which would then match nothing.
 */
const expressions = /^(\{\w+\}[^\0- "#<>\\^`{}\x7f-\uffff]+)*(\{\w+\})?(\{\?\w+(,\w+)*\})?$/;
const repeated = /\{\??(\w+,)*(\w+)[,}](.*\{\??)?(\w+,)*\2[,}]/;
/** Scheme, authority and "/": with these in front, no expansion can lead to another origin. */
const rooted = /^[a-z]+:\/\/[^/\\?#{]+\//i;

/** The canonical form of `uri`. Throws as the IDL says, with messages that start with `where`. */
export function canonical(uri: string, where: string): string {
  const limit = (text: string) => {
    if (text.length > maxURI)
      throw exception("QuotaExceededError", `${where}The URI exceeds the limit of ${maxURI} code units.`);
    return text;
  };
  limit(uri);
  const refuse = (what: string) => fail(`${where}'${uri}' ${what}`);
  const rest = exec(/\{.*/s, uri)?.[0] ?? "";
  if (rest && (!exec(expressions, rest) || exec(repeated, rest)))
    refuse("is not a valid URI template (only {name} and a last {?name,name}).");
  if (rest && !exec(rooted, uri)) throw foreign(uri, where, rest);
  let url!: URL;
  try {
    url = parsed(uri, rest);
  } catch {
    refuse("is not a valid absolute URI. " + remedy(uri, rest));
  }
  if (url.username || url.password) refuse("contains credentials.");
  if (exec(/#/, url.href)) refuse("contains a fragment.");
  return limit(spelt(url, rest));
}

/** The x keeps the parser from trimming or resolving the end, which an expression continues. */
const parsed = (uri: string, rest: string, base?: string) =>
  new SafeURL(slice(uri, 0, uri.length - rest.length) + (rest && "x"), base);

const spelt = ({ href }: URL, rest: string) => (rest ? slice(href, 0, -1) + rest : href);

/**
 * The canonical form of `uri`. Throws a SecurityError if it is not at `origin`, or is under
 * /.pagewire/, where a gateway lists the resources that several tabs have under one URI.
 */
export function requireOrigin(uri: string, origin: string, where: string): string {
  const key = canonical(uri, where);
  if (!owns(key, origin)) throw foreign(key, where);
  return key;
}

/** An opaque origin is "null", which no http URI starts with. */
const owns = (key: string, origin: string) => exec(/^https?:\/\/[^/]+\/(?!\.pagewire\/)/, key) && isAt(key, origin);

/** Compares text, up to and with the "/", as the core does. */
export const isAt = (key: string, origin: string) => slice(key, 0, origin.length + 1) === origin + "/";

const foreign = (uri: string, where: string, rest = "") =>
  exception(
    "SecurityError",
    `${where}'${uri}' is not at the page's origin, or is in its /.pagewire/. ${remedy(uri, rest)}`,
  );

/**
 * What to write instead of `uri`, whose part from the first brace on is `rest`. A relative URI gets
 * the base that links have. One that begins with the page's host lacks the scheme.
 */
function remedy(uri: string, rest: string): string {
  const { host, origin, protocol } = location;
  if (globalThis.origin === "null") return "An opaque origin has no URIs.";
  let whole = "";
  try {
    const url = parsed((isAt(uri, host) ? protocol + "//" : "") + uri, rest, ofDocument("baseURI"));
    url.hash = "";
    whole = spelt(url, rest);
  } catch {}
  // A blank URI, or a fragment alone, would name the document.
  return exec(/^\s*[^\s#]/, uri) && owns(whole, origin) && (!rest || !exec(/#.*{/, uri))
    ? `Write '${whole}', which is location.origin + '${slice(whole, origin.length)}'.`
    : `Write one that begins with '${origin}/'.`;
}
