// The globals of the manual's examples: a cart, and the URI at which it is offered.
globalThis.uri = `${location.origin}/state/cart`;
globalThis.cart = {
  items: [{ sku: "oat-milk", count: 2 }],
  total: 5.4,
  onchange: null,
  add(sku) {
    this.items.push({ sku, count: 1 });
    this.onchange?.();
  },
};
