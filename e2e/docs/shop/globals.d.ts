// The types of globals.js, for blocks of ts, tsx and jsx.
import "pagewire";

declare global {
  interface Cart {
    items: { sku: string; count: number }[];
    total: number;
    onchange: (() => void) | null;
    add(sku: string): void;
  }
  var cart: Cart;
  var uri: string;
}
