/** The page: a board of cards in three columns. Cards move by dragging, or by the buttons on them. */
export {};

const columns = ["To do", "Doing", "Done"];
const doing = 1;
interface Card {
  id: number;
  title: string;
  column: number;
}
let cards: Card[] = [
  { id: 1, title: "Sand the table", column: 2 },
  { id: 2, title: "Oil the chairs", column: 1 },
  { id: 3, title: "Order brass hinges", column: 0 },
  { id: 4, title: "Repair the drawer", column: 0 },
  { id: 5, title: "Sharpen the planes", column: 0 },
];
let lastId = cards.length;

// Pagewire: the list has the board and each card in Doing. A card is registered when it gets there and unregistered
// when it leaves, and agents are notified that the list has changed. The template reads every other card.

const context = navigator.modelContext;
const boardURI = new URL("board", location.href).href;
const cardURI = (id: number | string) => `${boardURI}/card/${id}`;

context.registerResource({
  uri: boardURI,
  name: "board",
  title: "Board",
  description: "The titles of all cards by column, with their ids.",
  mimeType: "application/json",
  read: readBoard,
});

context.registerResource({
  uri: cardURI("{id}"),
  name: "card",
  title: "Any card",
  description: "One card of the board, by its id.",
  mimeType: "application/json",
  read: (_uri, { params }) => readCard(Number((params as { id: string }).id)),
});

function changed(card: Card, before: number | undefined): void {
  context.notifyResourceUpdated(boardURI);
  context.notifyResourceUpdated(cardURI(card.id));
  if (before === doing) context.unregisterResource(cardURI(card.id));
  if (card.column === doing) atHand(card);
}

function atHand({ id, title }: Card): void {
  context.registerResource({
    uri: cardURI(id),
    name: `card ${id}`,
    title,
    description: "A card that is being worked on.",
    mimeType: "application/json",
    read: () => readCard(id),
  });
}

function readBoard(): string {
  const titles = (column: number) => inColumn(column).map(({ id, title }) => `${id}: ${title}`);
  return JSON.stringify(Object.fromEntries(columns.map((name, column) => [name, titles(column)])));
}

function readCard(id: number): string {
  const card = cards.find((one) => one.id === id);
  if (!card) throw new Error(`There is no card ${id}.`);
  return JSON.stringify({ ...card, column: columns[card.column] ?? "archived" });
}

// The board.

function inColumn(column: number): Card[] {
  return cards.filter((card) => card.column === column);
}

/** Moves a card to the end of a column; after the last column comes the archive. */
function move(card: Card, column: number): void {
  if (column === card.column) return;
  const before = card.column;
  card.column = column;
  cards = [...cards.filter((one) => one !== card), card];
  status.textContent = `${card.title}: ${columns[column] ?? "archived"}`;
  changed(card, before);
  show();
}

const board = document.getElementById("board")!;
const add = document.getElementById("add") as HTMLFormElement;
const status = document.getElementById("status")!;

function show(): void {
  const focused = (document.activeElement as HTMLElement | null)?.dataset.key;
  board.replaceChildren(...columns.map(drawColumn));
  // A moved card is a new element. A person who moved it by a button keeps the focus.
  board.querySelector<HTMLElement>(`[data-key="${focused}"]`)?.focus();
}

function drawColumn(name: string, column: number): HTMLElement {
  const section = document.createElement("section");
  section.setAttribute("aria-label", name);
  section.innerHTML = `<h3>${name} <span>${inColumn(column).length}</span></h3><ul></ul>`;
  section.lastElementChild!.append(...inColumn(column).map(drawCard));
  section.addEventListener("dragover", (event) => event.preventDefault());
  section.addEventListener("drop", (event) => {
    event.preventDefault();
    const card = cards.find(({ id }) => String(id) === event.dataTransfer?.getData("text/plain"));
    if (card) move(card, column);
  });
  return section;
}

function drawCard(card: Card): HTMLElement {
  const item = document.createElement("li");
  item.dataset.card = String(card.id);
  item.draggable = true;
  item.addEventListener("dragstart", (event) => event.dataTransfer?.setData("text/plain", String(card.id)));
  const title = document.createElement("span");
  title.textContent = card.title;
  item.append(title, step(card, -1, "←"), step(card, 1, columns[card.column + 1] ? "→" : "✓"));
  return item;
}

function step(card: Card, by: number, sign: string): HTMLElement {
  const button = document.createElement("button");
  const to = columns[card.column + by] ?? (by > 0 ? "the archive" : "");
  button.type = "button";
  button.textContent = sign;
  button.dataset.key = `${card.id} ${by}`;
  button.setAttribute("aria-label", `Move ${card.title} to ${to}`);
  button.hidden = !to;
  button.addEventListener("click", () => move(card, card.column + by));
  return button;
}

add.addEventListener("submit", (event) => {
  event.preventDefault();
  const title = new FormData(add).get("title")!.toString().trim();
  if (!title) return;
  const card = { id: ++lastId, title, column: 0 };
  cards.push(card);
  add.reset();
  changed(card, undefined);
  show();
});

inColumn(doing).forEach(atHand);
show();
