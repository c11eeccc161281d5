import { create } from "zustand";

export const useCart = create<{ items: string[]; add: (item: string) => void }>()((set) => ({
  items: ["tea"],
  add: (item) => set(({ items }) => ({ items: [...items, item] })),
}));
