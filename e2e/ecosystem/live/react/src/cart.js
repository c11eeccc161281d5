import { create } from "zustand";

export const useCart = create((set) => ({
  items: ["tea"],
  add: (item) => set(({ items }) => ({ items: [...items, item] })),
}));
