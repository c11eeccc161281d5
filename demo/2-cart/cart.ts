/**
 * The page: a bakery's cart. An agent may order it by the tool `checkout`, but only the cart that
 * it has seen.
 */
export {};

const products = [
  { sku: "rye-bread", name: "Rye bread", unit: "750 g", cents: 420 },
  { sku: "croissant", name: "Croissant", unit: "each", cents: 180 },
  { sku: "oat-milk", name: "Oat milk", unit: "1 l", cents: 240 },
  { sku: "apple-tart", name: "Apple tart", unit: "26 cm", cents: 1650 },
];
const counts = new Map([
  ["rye-bread", 1],
  ["croissant", 4],
]);

// Pagewire: the cart is a resource, and `checkout` depends on it. An agent that has not read the
// cart since its last change is refused before `execute` runs. It learns what has changed, and may
// call again. The gateway records the content shown to each agent; the page decides, in the turn in
// which the tool would run.

const context = navigator.modelContext;
const cartURI = new URL("state/cart", location.href).href;

context.registerResource({
  uri: cartURI,
  name: "cart",
  title: "Cart",
  description: "What the user is about to order, with prices in euros.",
  mimeType: "application/json",
  annotations: { subscribeHint: true },
  read: () => JSON.stringify({ items: items(), total: euros(total()) }),
});

void context.registerTool({
  name: "checkout",
  description: "Orders what is in the cart, for the user.",
  inputSchema: { type: "object", properties: {} },
  execute: () => order("an agent"),
});

pagewire.configure({
  gateway: location.origin.replace("http", "ws"),
  freshState: { checkout: [cartURI] },
});

function changed(): void {
  context.notifyResourceUpdated(cartURI);
  show();
}

// The shop.

function items(): { sku: string; name: string; count: number; price: string }[] {
  return products
    .filter(({ sku }) => counts.get(sku))
    .map(({ sku, name, cents }) => ({ sku, name, count: counts.get(sku)!, price: euros(cents) }));
}

function total(): number {
  return products.reduce((sum, { sku, cents }) => sum + (counts.get(sku) ?? 0) * cents, 0);
}

function order(by: string): string {
  const many = items().reduce((sum, { count }) => sum + count, 0);
  if (!many) return "The cart is empty: nothing was ordered.";
  const done = `Ordered by ${by}: ${many} ${many === 1 ? "item" : "items"} for ${euros(total())}.`;
  counts.clear();
  ordered.textContent = done;
  changed();
  return done;
}

function euros(cents: number): string {
  return `€ ${(cents / 100).toFixed(2)}`;
}

const shelf = document.getElementById("shelf")!;
const ordered = document.getElementById("ordered")!;
const buy = document.getElementById("order") as HTMLButtonElement;

for (const { sku, name, unit, cents } of products) {
  const row = document.createElement("li");
  row.dataset.sku = sku;
  row.innerHTML = `
    <span class="name">${name}</span>
    <span class="unit hint">${euros(cents)} · ${unit}</span>
    <button type="button" class="round less" aria-label="One ${name} less">−</button>
    <output aria-label="${name} in the cart"></output>
    <button type="button" class="round more" aria-label="One ${name} more">+</button>`;
  const add = (n: number) => () => {
    counts.set(sku, Math.min(99, Math.max(0, (counts.get(sku) ?? 0) + n)));
    changed();
  };
  row.querySelector(".less")!.addEventListener("click", add(-1));
  row.querySelector(".more")!.addEventListener("click", add(1));
  shelf.append(row);
}
buy.addEventListener("click", () => order("you"));

function show(): void {
  for (const row of shelf.children as HTMLCollectionOf<HTMLElement>) {
    const count = counts.get(row.dataset.sku!) ?? 0;
    row.classList.toggle("none", !count);
    row.querySelector("output")!.textContent = String(count);
    // Not disabled: a disabled button would take the focus from a person who presses it a last
    // time.
    row.querySelector(".less")!.setAttribute("aria-disabled", String(!count));
  }
  document.getElementById("total")!.textContent = euros(total());
  buy.disabled = !total();
}
show();
