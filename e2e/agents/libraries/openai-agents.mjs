// An agent of @openai/agents.
import { Agent, MCPServerStdio, run, setTracingDisabled } from "@openai/agents";

setTracingDisabled(true);
const [command, ...args] = JSON.parse(process.env.GATEWAY);
const server = new MCPServerStdio({ name: "pagewire", command, args });
await server.connect();
const agent = new Agent({ name: "test", model: "scripted", mcpServers: [server] });
const { finalOutput } = await run(agent, process.env.PROMPT);
console.log(finalOutput);
await server.close();
