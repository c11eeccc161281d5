// The browser's share of a tool call: a native tool, which the page calls through the browser.
document.modelContext.registerTool({
  name: "state",
  description: "The page's state.",
  inputSchema: { type: "object", properties: {} },
  execute: async () => ({ content: [{ type: "text", text: state }] }),
});
const tools = document.modelContext.getTools();
self.reply = async (_, send) => send(await document.modelContext.executeTool((await tools)[0], {}, {}));
