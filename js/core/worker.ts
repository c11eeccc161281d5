/**
 * dist/pagewire.worker.js: a core in a worker, for pages whose Content Security Policy forbids
 * wasm. A classic script, so that it needs no module support in workers. remote.ts is the other
 * side.
 */
import { attach } from "./edge.ts";
import { compile } from "./compile.ts";
import type { CoreOptions, PortCore, PortSource } from "../link/link.ts";
import type { Started, ToCore, ToPage } from "./remote.ts";

const post = (message: ToPage | Started): void =>
  (self as unknown as { postMessage(m: unknown): void }).postMessage(message);

/** The page for the core: each call of it is posted as a message. */
const page = new Proxy({} as PortSource, {
  get:
    (_, name: keyof PortSource) =>
    (...args: unknown[]) =>
      post([name, ...args] as unknown as ToPage),
});

let core: PortCore | undefined;

self.onmessage = async ({ data }: MessageEvent<CoreOptions | ToCore>) => {
  if (Array.isArray(data)) {
    const [name, ...args] = data;
    (core?.[name] as ((...args: unknown[]) => void) | undefined)?.(...args);
    return;
  }
  try {
    core = await attach(page, await compile(data), data);
    post(["started", ""]);
  } catch (cause) {
    post(["started", `${cause}`]);
  }
};
