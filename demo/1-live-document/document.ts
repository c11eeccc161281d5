/**
 * The page: a note and an order form that a person edits. Its contents are published to AI agents
 * as three resources, by three calls on `navigator.modelContext`. Nothing else in this file has to
 * do with agents.
 *
 * The page keeps no copy of its state for agents, and sends it nowhere: `read` is called when an
 * agent asks.
 */
export {};

const context = navigator.modelContext;
const title = field<HTMLInputElement>("document-title");
const text = field<HTMLTextAreaElement>("document-text");
const place = field<HTMLInputElement>("order-place");
const day = field<HTMLSelectElement>("order-day");
const portions = field<HTMLInputElement>("order-portions");
const shared = field<HTMLInputElement>("order-shared");

const documentURI = new URL("state/document", location.href).href;
const selectionURI = new URL("state/selection", location.href).href;
const orderURI = new URL("state/order", location.href).href;

// 1. Resources that agents can read.

context.registerResource({
  uri: documentURI,
  name: "document",
  title: "Document",
  description: "The note that the user is writing, as Markdown.",
  mimeType: "text/markdown",
  annotations: { subscribeHint: true },
  read: () => `# ${title.value}\n\n${text.value}\n`,
});

context.registerResource({
  uri: selectionURI,
  name: "selection",
  title: "Selection",
  description: "The part of the note that the user has selected, with its position in the text; null if none.",
  mimeType: "application/json",
  annotations: { subscribeHint: true },
  read: readSelection,
});

const order: ModelContextResource = {
  uri: orderURI,
  name: "order",
  title: "Order",
  description: "The delivery order as the form has it now. Not sent yet.",
  mimeType: "application/json",
  annotations: { subscribeHint: true },
  read: () => JSON.stringify({ place: place.value, day: day.value, portions: portions.valueAsNumber }),
};
context.registerResource(order);

// 2. Changes. Notify as often as you like: agents get notifications at a limited rate, and the last change always
// arrives. When no agent watches, the call costs next to nothing.

field("note").addEventListener("input", () => context.notifyResourceUpdated(documentURI));

let selected = readSelection();
document.addEventListener("selectionchange", () => {
  const now = readSelection();
  if (now === selected) return; // a caret that moves selects nothing
  selected = now;
  context.notifyResourceUpdated(selectionURI);
});

field("order").addEventListener("input", (event) => {
  if (event.target !== shared) context.notifyResourceUpdated(orderURI);
});

// 3. Withdrawal.

shared.addEventListener("change", () => {
  if (shared.checked) context.registerResource(order);
  else context.unregisterResource(orderURI);
});

function readSelection(): string {
  const { selectionStart: from, selectionEnd: to } = text;
  return JSON.stringify(from === to ? null : { text: text.value.slice(from, to), from, to });
}

function field<T extends HTMLElement = HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}
