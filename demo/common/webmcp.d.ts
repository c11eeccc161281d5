/** What the demos use of WebMCP's own: https://webmachinelearning.github.io/webmcp */
interface ModelContext {
  /** Offers a tool to agents. What `execute` returns, as text or in the shape of MCP's tool results, is the answer. */
  registerTool(tool: {
    name: string;
    description: string;
    inputSchema?: object;
    // biome-ignore lint/suspicious/noExplicitAny: each tool knows what its inputSchema admits
    execute(input: any): unknown;
  }): Promise<void>;
}
