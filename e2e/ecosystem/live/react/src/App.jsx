import { QueryClient, QueryClientProvider, useQuery } from "@tanstack/react-query";
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

export default function App() {
  return (
    <QueryClientProvider client={client}>
      <Shop />
    </QueryClientProvider>
  );
}
