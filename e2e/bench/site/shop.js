// A cart and a text, shown, and declared where Pagewire is in the page. Each answer of /change is a state to show.
{
  const shown = {};
  const none = { registerResource() {}, registerTool() {}, notifyResourceUpdated() {} };
  const context = globalThis.pagewire ? (document.modelContext ?? navigator.modelContext) : none;
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
  const cart = document.getElementById("cart");
  const text = document.getElementById("text");
  const fill = (box, lines) =>
    lines.forEach((line, i) => {
      const child = box.children[i] ?? box.appendChild(document.createElement("div"));
      if (child.textContent !== line) child.textContent = line;
    });
  const show = (state) => {
    if (state.text !== shown.text) {
      if (text.tagName === "PRE") text.textContent = state.text;
      else fill(text, state.text.split("\n"));
    }
    if (state.cart !== shown.cart)
      fill(
        cart,
        JSON.parse(state.cart).items.map((item) => Object.values(item).join(" ").trim()),
      );
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
