// Vite's development server on a port of its own. It prints its URL, and ends with its standard input, so that it never
// outlives the test that started it.
import { createServer } from "vite";

const server = await createServer({ server: { host: "127.0.0.1", port: 0 } });
await server.listen();
console.log(server.resolvedUrls.local[0]);
process.stdin.resume().on("end", () => process.exit());
