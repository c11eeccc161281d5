/**
 * The page: four in a row. The person plays O by clicking; an agent plays X by the tool `play`, and learns of the
 * person's moves from the resource `board`.
 */
export {};

const width = 7;
const height = 6;
type Player = "you" | "agent";
/** By column, from the bottom. */
let columns: Player[][];
let turn: Player;
/** The winner, or "nobody" if the board is full. */
let over: Player | "nobody" | undefined;

// Pagewire: the board is a resource, the move a tool. Both sides play by the same `drop`.

const context = navigator.modelContext;
const boardURI = new URL("board", location.href).href;

context.registerResource({
  uri: boardURI,
  name: "board",
  title: "Board",
  description: "Four in a row, top row first. The agent is X, the user O. `turn` says who moves, `over` who has won.",
  mimeType: "application/json",
  annotations: { subscribeHint: true },
  read: () => JSON.stringify({ turn: over ? "nobody" : turn, over: over ?? null, rows: rows() }),
});

void context.registerTool({
  name: "play",
  description: "Drops the agent's disc into a column, 1 to 7 from the left.",
  inputSchema: {
    type: "object",
    properties: { column: { type: "integer", minimum: 1, maximum: width } },
    required: ["column"],
  },
  execute: ({ column }: { column: number }) => {
    const refused = drop("agent", column - 1);
    return { isError: !!refused, content: [{ type: "text", text: refused || `X is in column ${column}.` }] };
  },
});

function changed(): void {
  context.notifyResourceUpdated(boardURI);
  show();
}

// The game.

function at(x: number, y: number): Player | undefined {
  return columns[x]?.[y];
}

function rows(): string[] {
  const signs = { you: "O", agent: "X" };
  const row = (y: number) => columns.map((column) => (column[y] ? signs[column[y]] : ".")).join("");
  return Array.from({ length: height }, (_, i) => row(height - 1 - i));
}

/** Drops a disc, or returns the reason why not. */
function drop(player: Player, x: number): string {
  const column = columns[x];
  if (over) return "The game is over.";
  if (turn !== player) return "It is not your turn.";
  if (!column) return `There is no such column: there are 1 to ${width}.`;
  if (column.length === height) return `Column ${x + 1} is full.`;
  column.push(player);
  turn = player === "you" ? "agent" : "you";
  if (line(x, column.length - 1).length) over = player;
  else if (columns.every(({ length }) => length === height)) over = "nobody";
  changed();
  return "";
}

/** The cells, as "x y", of a line of four or more through a disc; none if there is no such line. */
function line(x: number, y: number): string[] {
  for (const [dx, dy] of [
    [1, 0],
    [0, 1],
    [1, 1],
    [1, -1],
  ] as const) {
    const cells = [`${x} ${y}`];
    for (const sign of [1, -1])
      for (let i = sign; at(x + i * dx, y + i * dy) === at(x, y); i += sign) cells.push(`${x + i * dx} ${y + i * dy}`);
    if (cells.length >= 4) return cells;
  }
  return [];
}

function start(): void {
  columns = Array.from({ length: width }, () => []);
  turn = "you";
  over = undefined;
  changed();
}

// The board. A column is one button.

const board = document.getElementById("board")!;
for (let x = 0; x < width; x++) {
  const button = document.createElement("button");
  button.type = "button";
  button.append(...Array.from({ length: height }, () => document.createElement("span")));
  button.addEventListener("click", () => drop("you", x));
  board.append(button);
}
board.addEventListener("keydown", ({ key }) => {
  const now = [...board.children].indexOf(document.activeElement!);
  const to = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: width - 1 }[key] ?? Number(key) - 1;
  (board.children[to] as HTMLElement | undefined)?.focus();
});
document.getElementById("again")!.addEventListener("click", start);

function show(): void {
  const won = columns.flatMap((column, x) => (over && column.length ? line(x, column.length - 1) : []));
  [...board.children].forEach((button, x) => {
    const names = columns[x]!.map((player) => (player === "you" ? "yours" : "the agent's"));
    button.setAttribute("aria-label", `Column ${x + 1}: ${names.join(", ") || "empty"}`);
    [...button.children].forEach((cell, i) => {
      const y = height - 1 - i;
      cell.className = `${at(x, y) ?? ""} ${won.includes(`${x} ${y}`) ? "won" : ""}`;
    });
  });
  const ends = { you: "You win.", agent: "The agent wins.", nobody: "A draw." };
  document.getElementById("says")!.textContent = over
    ? ends[over]
    : turn === "you"
      ? "Your move."
      : "The agent's move.";
}
start();
