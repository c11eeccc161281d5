// An agent of @mastra/core with @mastra/mcp.
import { Agent } from "@mastra/core/agent";
import { MCPClient } from "@mastra/mcp";

const [command, ...args] = JSON.parse(process.env.GATEWAY);
const mcp = new MCPClient({ servers: { pagewire: { command, args } } });
const model = { id: "test/scripted", url: process.env.MODEL, apiKey: "fake" };
const agent = new Agent({ name: "test", instructions: "Help.", model, tools: await mcp.getTools() });
const { text } = await agent.generate(process.env.PROMPT, { maxSteps: 10 });
console.log(text);
await mcp.disconnect();
process.exit(0);
