/**
 * The agent that plays, in place of a model. It is notified of the board's change, reads it, and calls `play`, all by
 * MCP; it has only what the page offers to any agent.
 */
import { startConsole } from "../common/console/index.ts";

const plays = document.getElementById("plays") as HTMLInputElement;

const agent = startConsole((_uri, text) => {
  const { turn, rows } = JSON.parse(text) as { turn: string; rows: string[] };
  if (turn !== "agent" || !plays.checked) return;
  setTimeout(() => void agent.call("play", { column: choose(rows) + 1 }), 400); // a pause, so that people see both moves
});

/** Wins if it can, or else stops O from winning, or else plays near the middle if that does not help O. */
function choose(rows: string[]): number {
  const free = [3, 2, 4, 1, 5, 0, 6].filter((x) => rows[0]![x] === ".");
  const safe = free.filter((x) => {
    const after = put(rows, x, "X");
    return after[0]![x] !== "." || !wins(put(after, x, "O"), "O");
  });
  return (
    free.find((x) => wins(put(rows, x, "X"), "X")) ??
    free.find((x) => wins(put(rows, x, "O"), "O")) ??
    safe[0] ??
    free[0]!
  );
}

function put(rows: string[], x: number, sign: string): string[] {
  const y = rows.map((row) => row[x]).lastIndexOf(".");
  return rows.map((row, i) => (i === y ? row.slice(0, x) + sign + row.slice(x + 1) : row));
}

/** A line: four equal signs that are 1 (beside), 7, 8 or 9 (below) apart in the rows' text, which has eight a row. */
function wins(rows: string[], sign: string): boolean {
  const text = rows.join("|");
  return [1, 7, 8, 9].some((step) => new RegExp(`${sign}(.{${step - 1}}${sign}){3}`).test(text));
}
