// The part of a page that the relay needs in a browser with WebMCP: @mcp-b/global 5.1.0 does not bring it there.
Object.defineProperty(navigator, "modelContextTesting", {
  value: {
    listTools: () => [
      { name: "state", description: "The page's state.", inputSchema: '{"type":"object","properties":{}}' },
    ],
    executeTool: async () => JSON.stringify({ content: [{ type: "text", text: state }] }),
    registerToolsChangedCallback() {},
  },
});
