// A page of records, one a line, and of news, on which no write depends. It offers the records to all contenders: as
// text, as a resource where Pagewire is in the page, and by the tool `state`. The tool `change` is the write.
{
  const lines = {}; // by number, so in its order
  const writes = []; // accepted, each with the text before it
  const news = document.getElementById("news");
  const box = document.getElementById("records");
  const uri = location.origin + "/records";
  const text = () => `${Object.values(lines).join("\n")}\n`;
  const context = document.modelContext ?? navigator.modelContext;
  const set = (id, line) => {
    lines[id] = line;
    (box.children[id - 1] ?? box.appendChild(document.createElement("div"))).textContent = line;
  };
  const changed = () => globalThis.pagewire && context.notifyResourceUpdated(uri);
  const tool = (name, description, properties, execute) =>
    context.registerTool({
      name,
      description,
      inputSchema: { type: "object", properties, required: Object.keys(properties) },
      execute: (input) => ({ content: [{ type: "text", text: execute(input) }] }),
    });
  if (globalThis.pagewire) context.registerResource({ uri, name: "Records", mimeType: "text/plain", read: text });
  if (globalThis.guarded) pagewire.configure({ freshState: { change: [uri] } });
  tool("state", "All records of the page.", {}, text);
  tool("change", "Set the field of a record.", { id: { type: "integer" }, field: { type: "string" } }, (input) => {
    writes.push({ ...input, before: text() });
    set(input.id, lines[input.id].replace(/\w+( \| [^|]*)$/, input.field + "$1"));
    changed();
    return "done";
  });
  // The person's hand, and each task's beginning.
  globalThis.show = (title, records) => {
    if (title) {
      document.getElementById("title").textContent = title;
      for (const id in lines) delete lines[id];
      box.replaceChildren();
    }
    for (const [id, line] of records) set(id, line);
    if (records.length) changed();
    else news.textContent += "!";
  };
  globalThis.took = () => writes.splice(0);
}
