import { configureStore } from "@reduxjs/toolkit";

export const user = configureStore({ reducer: (state = { name: "Ada" }) => state });
