// A consumer of the package without React. It is compiled, never run.
import pagewire, { pagewire as named, type PagewireStats, type PagewireTransport } from "pagewire";
import "pagewire/iife";
import { type Agent, watch } from "pagewire/testing";

const uri = location.origin + "/state";
navigator.modelContext.registerResource({ uri, name: "State", read: () => "text" }, { signal: AbortSignal.timeout(1) });
document.modelContext.registerResource({
  uri,
  name: "State",
  read: async (_uri, { params, signal }) => ({ text: `${params} ${signal.aborted}` }),
});
navigator.modelContext.notifyResourceUpdated(uri);
navigator.modelContext.unregisterResource(uri);
// @ts-expect-error: no read
navigator.modelContext.registerResource({ uri, name: "State" });
// @ts-expect-error: a number is no contents
navigator.modelContext.registerResource({ uri, name: "State", read: () => 5 });

navigator.modelContext.registerResource({
  uri: `${location.origin}/product/{sku}{?size,color}`,
  name: "Product",
  read(_uri, { params }) {
    const size: string | undefined = params.size;
    // @ts-expect-error: a query may lack it
    params.color.length;
    // @ts-expect-error: the template has no such variable
    params.count;
    return params.sku.toUpperCase() + size;
  },
});
navigator.modelContext.registerResource({ uri, name: "State", read: (_uri, { params }) => Object.keys(params).join() });
navigator.modelContext.registerResource({
  uri: `${location.origin}/list`,
  name: "List",
  uriSchema: { type: "object", properties: { page: { type: "integer" } } },
  read: (_uri, { params }) => `${params.page}`,
});
const some = { uri: uri as string, name: "Some", uriSchema: {} };
navigator.modelContext.registerResource({ ...some, read: (_uri, { params }) => `${params.page}` });
const template: ModelContextResource = { uri, name: "State", read: () => "text" };
navigator.modelContext.registerResource(template);

const onupdated = ({ detail }: CustomEvent<{ uri: string }>): number => detail.uri.length;
navigator.modelContext.addEventListener("resourceupdated", onupdated);
navigator.modelContext.addEventListener("resourceupdated", ({ detail }) => detail.uri.length);
// @ts-expect-error: it has the URI alone
navigator.modelContext.addEventListener("resourceupdated", ({ detail }) => detail.text);
navigator.modelContext.removeEventListener("resourceupdated", onupdated);
navigator.modelContext.addEventListener("other", { handleEvent: (event) => event.type });
const tool: Promise<void> = navigator.modelContext.registerTool(
  { name: "add", description: "Adds", inputSchema: { type: "object" }, execute: ({ sku }) => sku },
  { signal: AbortSignal.timeout(1) },
);
void tool;
navigator.modelContext.registerTool({
  name: "empty",
  description: "Empties the cart",
  outputSchema: { type: "object" },
  annotations: { readOnlyHint: false, consequentialHint: true, untrustedContentHint: false, debugging: true },
  execute: () => ({ items: [] }),
});
// @ts-expect-error: no hint of WebMCP
navigator.modelContext.registerTool({ name: "a", description: "b", annotations: { safe: true }, execute: () => "" });
// @ts-expect-error: no description
navigator.modelContext.registerTool({ name: "add", execute: () => "" });

const ondead = ({ detail }: CustomEvent<{ reason: string }>): number => detail.reason.length;
named.addEventListener("coredead", ondead);
named.removeEventListener("coredead", ondead);
named.configure({ load: "idle" });
globalThis.pagewire.addEventListener("coredead", ({ detail }) => detail.reason.length);
export const transport: PagewireTransport = pagewire.connect();
export const stats: PagewireStats = pagewire.stats();
export const agent: Promise<Agent> = watch();
export const text: Promise<string> = watch({ evaluate: async () => null }).then((agent) => agent.read("/state"));
// @ts-expect-error: the script exports nothing
export { pagewire as none } from "pagewire/iife";
