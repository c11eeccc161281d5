/**
 * The host: it shows three Views in sandboxed frames, fed by an MCP server over HTTP through the
 * official client. One line, `attachViews` in `show`, adds subscriptions. Without them it is like
 * every MCP Apps host of today, and the Views poll through it.
 */
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type * as views from "../../js/views.d.ts";
import { Meter } from "./parts/meter.ts";

/** `pagewire/views` as shipped. */
const shipped: string = "/views.js";
const { attachViews } = (await import(shipped)) as typeof views;

interface Message {
  jsonrpc: "2.0";
  id?: number;
  method?: string;
  params?: { uri?: string };
}

const meter = new Meter();
let client: Client | undefined;
/** The last switch. The next one runs after it, so that two quick ones do not mix. */
let last: Promise<void> = Promise.resolve();

/** Shows the Views again: of the server of an era, with or without subscriptions. */
async function start(era: string, subscriptions: boolean): Promise<void> {
  const place = document.getElementById("views")!;
  place.replaceChildren(); // removes the frames, and ends their Views' watches
  await new Promise((done) => setTimeout(done, 50)); // until the server knows that
  await client?.close();
  meter.start(subscriptions);
  client = new Client(
    { name: "demo-5", version: "1" },
    era === "modern" ? { versionNegotiation: { mode: { pin: "2026-07-28" } } } : {},
  );
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`/mcp/${era}`, location.href), {
      fetch: (url, init) => meter.fetch(url, init),
    }),
  );
  for (const kind of ["chart", "table", "log"]) place.append(show(kind, client, subscriptions));
}

/** A frame with a View, and the host's side of its channel. */
function show(kind: string, client: Client, subscriptions: boolean): HTMLIFrameElement {
  const frame = document.createElement("iframe");
  frame.title = kind;
  frame.sandbox.add("allow-scripts");
  frame.src = `view.html?kind=${kind}`;

  const attached = subscriptions ? attachViews(frame, client) : undefined;
  const listener = async ({ source, data }: MessageEvent<Message & { shown?: string }>): Promise<void> => {
    if (!frame.isConnected) return removeEventListener("message", listener);
    if (source !== frame.contentWindow || !data) return;
    if (data.shown) meter.shown();
    const answer = (result: unknown): void =>
      frame.contentWindow?.postMessage({ jsonrpc: "2.0", id: data.id, result }, "*");
    switch (data.method) {
      case "ui/initialize": {
        await attached?.ready;
        const hostCapabilities = attached ? attached.capabilities({ serverResources: {} }) : { serverResources: {} };
        answer({
          protocolVersion: "2026-01-26",
          hostCapabilities,
          hostInfo: { name: "demo-5", version: "1" },
          hostContext: {},
        });
        break;
      }
      case "resources/read": // only without subscriptions: otherwise attachViews answers it
        answer(await client.request({ method: "resources/read", params: { uri: data.params!.uri! } }));
        break;
    }
  };
  addEventListener("message", listener);
  return frame;
}

const form = document.getElementById("switches") as HTMLFormElement;
function change(): void {
  const era = new FormData(form).get("era") as string;
  const subscriptions = (document.getElementById("subscriptions") as HTMLInputElement).checked;
  last = last
    .then(() => start(era, subscriptions))
    .then(
      () => meter.trouble(""),
      (error) => meter.trouble(`${error}: is the page served by make demo?`),
    );
}
form.addEventListener("change", change);
change();
