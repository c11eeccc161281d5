import { configureStore, createSlice } from "@reduxjs/toolkit";

const slice = createSlice({
  name: "cart",
  initialState: { items: ["tea"] },
  reducers: {
    add(state, { payload }: { payload: string }) {
      state.items.push(payload);
    },
  },
});
export const { add } = slice.actions;
export const cart = configureStore({ reducer: slice.reducer });
