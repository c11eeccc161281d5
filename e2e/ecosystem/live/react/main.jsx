import { QueryClient, QueryClientProvider, useQuery } from "@tanstack/react-query";
import { createRoot } from "react-dom/client";
import { useCart } from "./cart.js";
import { user } from "./user.js";

const client = new QueryClient();

function Shop() {
  const { items, add } = useCart();
  const { data } = useQuery({ queryKey: ["prices"], queryFn: async () => ({ tea: 3 }) });
  const buy = () => {
    add("milk");
    history.pushState(null, "", "/paid");
  };
  return (
    <button type="button" onClick={buy}>
      {user.getState().name}: {items.join(", ")} for {data?.tea}
    </button>
  );
}

createRoot(document.getElementById("root")).render(
  <QueryClientProvider client={client}>
    <Shop />
  </QueryClientProvider>,
);
