/**
 * Where two texts differ: the shortest middle of `now` without which it would be a beginning and an end of `before`.
 */
export function changed(before: string, now: string): { from: number; to: number } {
  const shorter = Math.min(before.length, now.length);
  let from = 0;
  while (from < shorter && before[from] === now[from]) from++;
  let end = 0;
  while (end < shorter - from && before[before.length - 1 - end] === now[now.length - 1 - end]) end++;
  return { from, to: now.length - end };
}
