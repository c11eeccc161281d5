/**
 * The View's side of the MCP Apps channel, as small as possible: the part of
 * @modelcontextprotocol/ext-apps' `App` that the demo needs, so that both sides of the channel can
 * be read here. A real View uses that `App`.
 */
interface Message {
  jsonrpc: "2.0";
  id?: number;
  method?: string;
  params?: unknown;
  result?: unknown;
  error?: { code: number; message: string };
}

export class App {
  #capabilities: object | undefined;
  #last = 0;
  readonly #waiting = new Map<number, { done: (result: never) => void; failed: (error: unknown) => void }>();

  /** The handshake with the host, which is the parent window. */
  async hello(): Promise<void> {
    addEventListener("message", ({ source, data }: MessageEvent<Message>) => {
      if (source !== parent || data?.jsonrpc !== "2.0") return;
      if (data.method === "ui/resource-teardown") parent.postMessage({ jsonrpc: "2.0", id: data.id, result: {} }, "*");
      const waiting = this.#waiting.get(data.id ?? -1);
      if (data.method || !waiting) return;
      this.#waiting.delete(data.id!);
      if (data.error) waiting.failed(Object.assign(new Error(data.error.message), data.error));
      else waiting.done(data.result as never);
    });
    const params = { appCapabilities: {}, appInfo: { name: "demo-5", version: "1" }, protocolVersion: "2026-01-26" };
    const { hostCapabilities } = await this.request<{ hostCapabilities: object }>({ method: "ui/initialize", params });
    this.#capabilities = hostCapabilities;
    parent.postMessage({ jsonrpc: "2.0", method: "ui/notifications/initialized" }, "*");
  }

  request<T>(request: { method: string; params: unknown }, options: { timeout?: number } = {}): Promise<T> {
    const id = ++this.#last;
    return new Promise((done, failed) => {
      this.#waiting.set(id, { done, failed });
      setTimeout(
        () => this.#waiting.delete(id) && failed(new Error(`${request.method}: no answer`)),
        options.timeout ?? 60_000,
      );
      // A sandboxed frame has an opaque origin, and does not know the host's.
      parent.postMessage({ jsonrpc: "2.0", id, ...request }, "*");
    });
  }

  readServerResource(
    params: { uri: string },
    options?: { timeout?: number },
  ): Promise<{ contents: { uri: string; text?: string }[] }> {
    return this.request({ method: "resources/read", params }, options);
  }

  getHostCapabilities(): object | undefined {
    return this.#capabilities;
  }
}
