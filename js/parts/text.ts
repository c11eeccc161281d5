// Puts what pages and agents say into words and lines for people: numbers, the difference of two
// texts, JSON broken into lines, the name of a message.

export const number = new Intl.NumberFormat("en");

export const count = (n: number, one: string, many = one + "s") => `${number.format(n)} ${n === 1 ? one : many}`;

export function size(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1 << 20) return `${(bytes / 1024).toFixed(1)} KB`;
  return `${(bytes / (1 << 20)).toFixed(1)} MB`;
}

export function clock(at: number): string {
  const d = new Date(at);
  return d.toTimeString().slice(0, 8) + "." + String(d.getMilliseconds()).padStart(3, "0");
}

/**
 * Names a message, or the calls in a link's frame. The text may be clipped, so it is not parsed.
 */
export function what(text: string): string {
  const head = text.slice(0, 300);
  if (head.startsWith("=")) return `contents #${/\d+/.exec(head)?.[0]}`;
  if (head.startsWith("[")) {
    const calls = [...head.matchAll(/(?:^\[|\],)\["(\w{1,20})"(?:,(\d+))?/g)];
    return calls.map(([, name, id]) => (id === undefined ? name : `${name} #${id}`)).join(", ") || "received";
  }
  const method = /"method":\s*"([^"]{1,80})"/.exec(head)?.[1];
  const id = /"id":\s*("(?:[^"\\]|\\.){0,40}"|-?\d+)/.exec(head)?.[1]?.replaceAll('"', "");
  const kind = method ?? (/"error":/.test(head) ? "error" : "result");
  return id === undefined ? kind : `${kind} #${id}`;
}

/** A text whose URIs have their paths alone. */
export const paths = (text: string) => text.replace(/\bhttps?:\/\/[^/"'\s\\]+(?=\/)/g, "");

/**
 * The text of a resource, as people see it: JSON in lines, and the part that is new since the last
 * change.
 */
export class Shown {
  text = "";
  mark = { from: 0, to: 0 };
  #raw: string | undefined;

  /** Takes the text of a read, and returns whether it is a change. */
  take(raw: string): boolean {
    const text = pretty(raw);
    const differs = this.#raw !== undefined && this.#raw !== raw;
    if (differs) this.mark = changed(this.text, text);
    this.#raw = raw;
    this.text = text;
    return differs;
  }
}

// A word, a number with its sign, or any other character.
const token = /[-+]?[\p{L}\p{M}\p{N}_]+(?:(?:[.'’-]|,(?=\d{3}(?!\d)))[\p{L}\p{M}\p{N}_]+)*|./gsu;

/**
 * The difference of two texts: the shortest middle of `now`, in whole words and numbers. The rest
 * of `now` is a beginning and an end of `before`.
 */
export function changed(before: string, now: string): { from: number; to: number } {
  const [a, b] = [before.match(token) ?? [], now.match(token) ?? []];
  const shorter = Math.min(a.length, b.length);
  let [first, last, from, to] = [0, 0, 0, now.length];
  for (; first < shorter && a[first] === b[first]; first++) from += b[first]!.length;
  for (; last < shorter - first && a.at(-1 - last) === b.at(-1 - last); last++) to -= b.at(-1 - last)!.length;
  return { from, to };
}

const maxIndent = 32;

/** JSON with line breaks, its numbers as the page wrote them; any other text unchanged. */
export function pretty(text: string): string {
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  let depth = 0;
  const line = (by: number) => "\n" + "  ".repeat(Math.min((depth += by), maxIndent));
  return text.replace(/"(?:[^"\\]|\\.)*"|([{[])\s*([}\]])|\s+|[{}[\],:]/g, (t, open, close) => {
    if (open) return open + close;
    if (t === "{" || t === "[") return t + line(1);
    if (t === "}" || t === "]") return line(-1) + t;
    if (t === ",") return t + line(0);
    return t === ":" ? ": " : t.trim();
  });
}
