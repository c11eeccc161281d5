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

named.configure({ load: "idle" });
globalThis.pagewire.addEventListener("coredead", ({ detail }) => detail.reason.length);
export const transport: PagewireTransport = pagewire.connect();
export const stats: PagewireStats = pagewire.stats();
export const agent: Promise<Agent> = watch();
export const text: Promise<string> = watch({ evaluate: async () => null }).then((agent) => agent.read("/state"));
// @ts-expect-error: the script exports nothing
export { pagewire as none } from "pagewire/iife";
