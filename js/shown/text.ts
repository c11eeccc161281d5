/** Texts: what a person does not see of them goes, and none looks like a line of ours. */

/**
 * Marks in texts that are being made. No page can write them, since they are among the characters
 * that go: around a text whose change is no news, around what only a reader of links gets, and
 * before what is ours.
 */
export const mark = { quiet: "\u0001", loud: "\u0002", link: "\u0003", linked: "\u0004", ours: "\u0005" };

const scripts = "ArabDevaBengGuruGujrOryaTamlTeluKndaMlymSinhSyrcMongKhmrMymr".replace(/..../g, "\\p{sc=$&}");
/**
 * Controls, and what has no width: tags (U+E0000) can carry a hidden text, icon fonts use the
 * private area. The first group has the joiners that are part of a word, as in Persian, or of a
 * picture.
 */
const unseen = new RegExp(
  `((?<=[${scripts}\\p{M}])[\u200c\u200d](?=[${scripts}])|(?<=[\\p{ExtPict}\ufe0f\\p{EMod}])\u200d(?=\\p{ExtPict}))|` +
    "[\\p{DI}\\p{Cf}\\p{Co}\\p{Cs}]|(?![\t\n])\\p{Cc}",
  "gu",
);

const breaks = /[\r\f\v\x85\u2028\u2029]/g;
const facts = /\((?=frame of |secret\)|hidden text of |the page goes on)/gi;
/**
 * Without the characters that a person does not see. What only Pagewire says of a page is marked as
 * the page's own.
 */
export const clean = (text: string): string =>
  (/[^ -~\n]/.test(text) ? text.replace(breaks, " ").replace(unseen, "$1") : text).replace(facts, "\\(");
/** The text in one line, without white space around it. */
export const squash = (text: string): string => clean(text).replace(/\s+/g, " ").trim();

/** At most so many characters. No pair of surrogates is cut in two. */
export const cut = (text: string, most: number): string =>
  text.length > most ? `${text.slice(0, most - 1).replace(/[\ud800-\udbff]$/, "")}…` : text;

/** How the lines begin that only Pagewire writes. */
const ours =
  /^(#{1,6} |[-*] |[\\|[{}]|---|```|(title|url):|\((image|drawing|canvas|video|audio|frame|hidden text|the page)\b)/i;

/** A text after a backslash, if it begins like a line of ours. */
export const escaped = (text: string): string => (ours.test(text.trimStart()) ? "\\" : "") + text;
/** A line of a text. If a page's text begins like a line of ours, a backslash comes before it. */
export function line(text: string): string {
  const whole = text.replace(/ {2,}/g, " ").trim();
  const begin = /[\u0001-\u0004]/.test(whole) ? bare(plain(whole)) : whole;
  return (begin[0] !== mark.ours && ours.test(begin) ? "\\" : "") + withoutOurs(whole);
}
/** A line of code. None ends the code, or begins it anew. */
export const codeLine = (text: string): string => (/^[\s-]*```/.test(bare(plain(text))) ? `\\${text}` : text);
export const withoutOurs = (text: string): string => text.replaceAll(mark.ours, "");

/** A thing of ours, such as [Save]. The text in it cannot end it. */
export const token = (open: string, text: string, close: string): string =>
  mark.ours + open + withoutOurs(text).replaceAll(close, `\\${close}`) + close;

/** Without the addresses of links, or with them. */
export const plain = (text: string): string => text.replace(/\u0003[^\u0004]*\u0004/g, "");
export const linked = (text: string, shorten: (address: string) => string): string =>
  text.replace(/(?<=\u0003\]\()[^\u0004]*(?=\)\u0004)/g, shorten).replace(/[\u0003\u0004]/g, "");

const bare = (text: string): string => text.replace(/[\u0001\u0002]/g, "");
/** Without quiet texts, and the lines that have nothing else. */
const loud = (text: string): string => text.replace(/\u0001[^\u0002]*\u0002?/g, "").replace(/\n[ #|[\]·-]*(?=\n)/g, "");

/** A text as agents read it, and what of it is news if it changes. */
export const asRead = (text: string): { text: string; loud: string } =>
  text.includes(mark.quiet) ? { text: bare(text), loud: loud(text) } : { text, loud: text };
export const quiet = (text: string): string => {
  const whole = bare(text);
  const inner = whole.trim();
  return inner && whole.replace(inner, () => mark.quiet + inner + mark.loud);
};
