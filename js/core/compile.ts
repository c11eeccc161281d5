import type { CoreOptions } from "../link/link.ts";

/**
 * Fetches and compiles pagewire.wasm, or takes what the page layer has fetched: while it arrives if it has the right
 * content type, from its bytes otherwise. Rejects with a CompileError exactly where wasm is forbidden or the bytes
 * are not wasm. (WebKit compiles it where it is forbidden, and throws the CompileError when it is instantiated.)
 */
export async function compile(options: CoreOptions, given?: Promise<Response>): Promise<WebAssembly.Module> {
  let response: Response;
  try {
    const first = await given?.catch(() => undefined);
    // A failed response is fetched again, so that the error has the reason.
    const usable = first?.ok && !first.bodyUsed;
    response = usable ? first : await fetch(options.wasm, { integrity: options.integrity ?? "" });
  } catch (cause) {
    const why = options.integrity
      ? "unreachable, forbidden by connect-src, or not what the integrity value says"
      : "unreachable, or forbidden by connect-src";
    throw new Error(`pagewire: could not fetch ${options.wasm}: ${why}`, { cause });
  }
  if (!response.ok)
    throw new Error(
      `pagewire: could not fetch ${options.wasm}: HTTP ${response.status}; data-wasm can name another place`,
    );
  if (/^application\/wasm\b/i.test(response.headers.get("content-type") ?? "")) {
    return WebAssembly.compileStreaming(response);
  }
  return WebAssembly.compile(await response.arrayBuffer());
}
