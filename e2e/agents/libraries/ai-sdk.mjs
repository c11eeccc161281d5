// An agent of the library ai, with its MCP client.
import { experimental_createMCPClient as createMCPClient } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport as StdioTransport } from "@ai-sdk/mcp/mcp-stdio";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, stepCountIs } from "ai";

const [command, ...args] = JSON.parse(process.env.GATEWAY);
const client = await createMCPClient({ transport: new StdioTransport({ command, args }) });
const provider = createOpenAICompatible({ name: "test", baseURL: process.env.MODEL, apiKey: "fake" });
const { text } = await generateText({
  model: provider("scripted"),
  tools: await client.tools(),
  stopWhen: stepCountIs(10),
  prompt: process.env.PROMPT,
});
console.log(text);
await client.close();
