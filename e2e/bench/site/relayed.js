// The page's part of a bare gateway: it answers each message with the state.
self.reply = (text, send) =>
  send(
    JSON.stringify({
      jsonrpc: "2.0",
      id: JSON.parse(text).id,
      result: { contents: [{ text: state }], content: [{ type: "text", text: state }] },
    }),
  );
