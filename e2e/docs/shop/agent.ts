// The agent that looks at the result of a block of the manual: the official client, in the page.
import { Client } from "@modelcontextprotocol/client";

/** Reads all listed resources; returns the URIs read, and those that failed with the error. It reads no templates. */
export async function readAll(): Promise<{ read: string[]; failed: string[] }> {
  const result = { read: [] as string[], failed: [] as string[] };
  if (!globalThis.pagewire) return result;
  const client = new Client({ name: "manual", version: "1" });
  await client.connect(pagewire.connect() as never);
  if (client.getServerCapabilities()?.resources) {
    for (const { uri } of (await client.listResources()).resources) {
      try {
        const { contents } = await client.readResource({ uri });
        if (contents.length) result.read.push(uri);
        else result.failed.push(`${uri}: no contents`);
      } catch (error) {
        result.failed.push(`${uri}: ${error}`);
      }
    }
  }
  await client.close();
  return result;
}
