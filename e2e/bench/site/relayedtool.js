// The page's part of a bare gateway: it answers each message with the result of the native tool that the script before
// this one has registered.
self.reply = async (text, send) => {
  const result = await document.modelContext.executeTool((await tools)[0], {}, {});
  send(JSON.stringify({ jsonrpc: "2.0", id: JSON.parse(text).id, result: JSON.parse(result) }));
};
