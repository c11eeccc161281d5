// An agent of langchain with its MCP adapter.
import { MultiServerMCPClient } from "@langchain/mcp-adapters";
import { ChatOpenAI } from "@langchain/openai";
import { createAgent } from "langchain";

const [command, ...args] = JSON.parse(process.env.GATEWAY);
const client = new MultiServerMCPClient({ mcpServers: { pagewire: { transport: "stdio", command, args } } });
const model = new ChatOpenAI({ model: "scripted", apiKey: "fake", configuration: { baseURL: process.env.MODEL } });
const agent = createAgent({ model, tools: await client.getTools() });
const { messages } = await agent.invoke({ messages: [{ role: "user", content: process.env.PROMPT }] });
console.log(messages.at(-1).content);
await client.close();
