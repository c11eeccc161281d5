/**
 * One of the official TypeScript clients, unmodified, over HTTP. Each line on stdin is [action, ...arguments]; for each
 * one line is printed: {error, code, faults, said}. error is what the client throws, with its code. faults are the
 * errors of its connection, and whatever else goes wrong in the process. said are the server's messages, as it wrote
 * them.
 */
import { createInterface } from "node:readline";
import { StreamableHTTPClientTransport as ModernTransport, Client as Second } from "@modelcontextprotocol/client";
import { Client as First } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as LegacyTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [which, url, authorization] = process.argv.slice(2);
const modern = which === "sdk 2";
let said = [];
let faults = [];
let arriving = [];
for (const event of ["uncaughtException", "unhandledRejection"])
  process.on(event, (error) => void faults.push(`${event}: ${error?.stack}`));

/** fetch, with a copy of each message. */
async function tapped(input, init) {
  const answer = await fetch(input, init);
  if (answer.body === null) return answer;
  const [own, copy] = answer.body.tee();
  const copied = hear(copy, answer.headers.get("content-type") ?? "").catch(() => {});
  if (init.method === "POST") arriving.push(copied); // another stream stays open
  return new Response(own, { status: answer.status, statusText: answer.statusText, headers: answer.headers });
}

async function hear(stream, type) {
  let parts = []; // of the last line: a message may have 16 MB
  const decoder = new TextDecoder();
  for await (const chunk of stream) {
    parts.push(decoder.decode(chunk, { stream: true }));
    if (!type.startsWith("text/event-stream") || !parts.at(-1).includes("\n")) continue;
    const lines = parts.join("").split("\n");
    parts = [lines.pop()];
    for (const line of lines) if (line.startsWith("data: ") && line.length > 6) said.push(line.slice(6));
  }
  if (type.startsWith("application/json") && parts.length > 0) said.push(parts.join(""));
}

const me = { name: "test", version: "1" };
const client = modern
  ? new Second(me, { versionNegotiation: { mode: { pin: "2026-07-28" } } })
  : new First(me, { capabilities: {} });
client.onerror = (error) => void faults.push(`onerror: ${error}`);
const options = { fetch: tapped, requestInit: { headers: { Authorization: authorization } } };
await client.connect(new (modern ? ModernTransport : LegacyTransport)(new URL(url), options));

/** All pages of a list. The second client walks them by itself. */
async function all(list) {
  if (modern) return list(undefined, { cacheMode: "refresh" });
  let cursor;
  do ({ nextCursor: cursor } = await list(cursor && { cursor }));
  while (cursor !== undefined);
}

const actions = {
  async list() {
    await all((...args) => client.listTools(...args));
    await all((...args) => client.listResources(...args));
    await all((...args) => client.listResourceTemplates(...args));
  },
  call: (name, args) => client.callTool({ name, arguments: args }, ...(modern ? [] : [undefined])),
  progress: (name, args) =>
    client.callTool({ name, arguments: args }, ...(modern ? [] : [undefined]), { onprogress() {} }),
  read: (uri) => client.readResource({ uri }, modern ? { cacheMode: "refresh" } : undefined),
};

for await (const line of createInterface({ input: process.stdin })) {
  const [action, ...args] = JSON.parse(line);
  const report = {};
  try {
    await actions[action](...args);
  } catch (error) {
    report.error = String(error).slice(0, 1000);
    report.code = error?.code;
  }
  await Promise.all(arriving);
  if (Object.prototype.polluted !== undefined) faults.push("a prototype is changed");
  const broken = said.filter((text) => /(?<!\\)(\\\\)*\\ud[89a-f]/.test(JSON.stringify(JSON.parse(text))));
  if (broken.length > 0) faults.push(`half of a surrogate pair: ${broken[0].slice(0, 1000)}`);
  process.stdout.write(`${JSON.stringify({ ...report, faults, said })}\n`);
  [said, faults, arriving] = [[], [], []];
}
await client.close();
process.exit();
