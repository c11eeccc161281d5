import type { CoreOptions } from "../link/link.ts";

/**
 * Fetches and compiles pagewire.wasm, or compiles the response that the page layer has fetched.
 * With the right content type, it compiles while the bytes arrive. Rejects with a CompileError
 * exactly if wasm is forbidden or the bytes are not wasm. (If wasm is forbidden, WebKit compiles it
 * all the same, and throws the CompileError at instantiation.)
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
