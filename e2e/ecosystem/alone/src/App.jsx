import { signal } from "@preact/signals-core";
import { configureStore } from "@reduxjs/toolkit";
import { QueryClient, QueryClientProvider, useQuery } from "@tanstack/react-query";
import { atom, useAtom } from "jotai";
import { makeAutoObservable } from "mobx";
import { share } from "pagewire/dev";
import { useState } from "react";
import { Provider, useDispatch, useSelector } from "react-redux";
import { create } from "zustand";

const user = configureStore({
  reducer: (state = { name: "Ada", visits: 1, accessToken: "a1b2" }, action) =>
    action.type === "visit" ? { ...state, visits: state.visits + 1 } : state,
});
const client = new QueryClient();
const useCart = create((set) => ({
  items: ["tea"],
  add: (item) => set(({ items }) => ({ items: [...items, item] })),
}));
const useLate = create(() => ({ late: true }));
const count = atom(1);
count.debugLabel = "count";
class Todos {
  list = ["write"];
  constructor() {
    makeAutoObservable(this);
  }
  add(what) {
    this.list.push(what);
  }
}
const todos = new Todos();
const five = signal(5);
share("five", five);

function Shop() {
  const { items, add } = useCart();
  const visits = useSelector((state) => state.visits);
  const dispatch = useDispatch();
  const [number, setNumber] = useAtom(count);
  const { data } = useQuery({ queryKey: ["prices"], queryFn: async () => ({ tea: 3 }) });
  const act = () => {
    add("milk");
    dispatch({ type: "visit" });
    setNumber(number + 1);
    todos.add("test");
    five.value = 6;
    history.pushState(null, "", "/paid?token=a1b2&tab=2");
  };
  return (
    <button type="button" onClick={act}>
      {items.join(", ")} {visits} {number} {data?.tea}
    </button>
  );
}

function Late() {
  return <p>{`${useLate((state) => state.late)}`}</p>;
}

export function App() {
  const [isLate, setLate] = useState(false);
  globalThis.setLate = setLate;
  return (
    <Provider store={user}>
      <QueryClientProvider client={client}>
        <Shop />
        {isLate && <Late />}
      </QueryClientProvider>
    </Provider>
  );
}
