// The state as a resource and as a tool, as far as the page's library has both.
{
  const uri = location.origin + "/state" + location.search.replace("?", "/");
  const content = { mimeType: "text/plain", text: state };
  const context = document.modelContext ?? navigator.modelContext;
  context.registerResource?.({
    uri,
    name: "state",
    mimeType: content.mimeType,
    read: async () => ({ contents: [{ uri, ...content }] }),
  });
  context.registerTool({
    name: "state",
    description: "The page's state.",
    inputSchema: { type: "object", properties: {} },
    execute: async () => ({ content: [{ type: "text", text: content.text }] }),
  });
}
