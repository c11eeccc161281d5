// A cart and a text, shown and declared. Each answer of /change is a state to show.
{
  const shown = {};
  const context = document.modelContext ?? navigator.modelContext;
  const at = (name) => location.origin + "/" + name;
  for (const [name, mimeType] of [
    ["cart", "application/json"],
    ["text", "text/plain"],
  ])
    context.registerResource({ uri: at(name), name, mimeType, read: () => shown[name] });
  context.registerTool({
    name: "work",
    description: "What the model has to do.",
    inputSchema: { type: "object", properties: {} },
    execute: () => ({ content: [{ type: "text", text: "done" }] }),
  });
  const list = document.getElementById("cart");
  const pre = document.getElementById("text");
  const show = (state) => {
    if (state.text !== shown.text) pre.textContent = state.text;
    if (state.cart !== shown.cart)
      JSON.parse(state.cart).items.forEach(({ sku, quantity, price, title, note }, i) => {
        const line = [sku, quantity, price, title, note].join(" ");
        const item = list.children[i] ?? list.appendChild(document.createElement("li"));
        if (item.textContent !== line) item.textContent = line;
      });
    for (const name of ["cart", "text"])
      if (state[name] !== shown[name]) {
        shown[name] = state[name];
        context.notifyResourceUpdated(at(name));
      }
  };
  (async () => {
    for (let done = 0; ; ) {
      const state = await (await fetch("/change?done=" + done)).json();
      show(state);
      done = state.n;
    }
  })();
}
