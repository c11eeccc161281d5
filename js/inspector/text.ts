// Shows texts of pages to people: the difference of two texts, and JSON broken into lines. The demos use it too.

// A word, a number with its sign, or any other character.
const token = /[-+]?[\p{L}\p{M}\p{N}_]+(?:(?:[.'’-]|,(?=\d{3}(?!\d)))[\p{L}\p{M}\p{N}_]+)*|./gsu;

/**
 * The difference of two texts: the shortest middle of `now`, in whole words and numbers. The rest of `now` is a
 * beginning and an end of `before`.
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
