/**
 * The agent console: an MCP client that watches this page, and a view of everything that the client
 * receives.
 *
 * session.ts is the agent, and does the same as an agent elsewhere. view.tsx draws it. tap.ts shows
 * the view the raw messages. This file puts them together, and starts over when the person picks
 * the other protocol version. `?era=legacy` or `?era=modern` picks one from the start.
 *
 * The page's `<section id="agent">` may say:
 *
 *   data-way="gateway"     connect by the demo server's gateway, over HTTP, like an agent on the desktop
 *   data-follow="no"       read a changed resource again only when the person presses the button
 */
import { StreamableHTTPClientTransport, type Transport } from "@modelcontextprotocol/client";
import { Session } from "./console/session.ts";
import { tapped } from "./console/tap.ts";
import { type Era, View } from "./console/view.tsx";

/** Fills the page's section and connects. */
function startConsole(): void {
  const place = document.getElementById("agent")!;
  const { way, follow } = place.dataset;
  const view = new View(place, way === "gateway", follow !== "no");
  let session: Session | undefined;
  /**
   * The last switch. The next one runs after it, so that two quick ones do not leave two sessions.
   */
  let last: Promise<void> = Promise.resolve();

  function connect(era: Era): void {
    last = last.then(async () => {
      await session?.close();
      view.reset(era);
      try {
        const transport: Transport =
          way === "gateway"
            ? new StreamableHTTPClientTransport(new URL("/mcp", location.href))
            : (pagewire.connect() as Transport);
        session = new Session(
          era,
          tapped(transport, (direction, message) => view.message(direction, message)),
          view,
          { follow: view.follows, within: new URL(".", location.href).href },
        );
        void session.start();
      } catch (error) {
        view.failed(String(error));
      }
    });
  }

  view.onEra = (era) => {
    history.replaceState(null, "", `?era=${era}`);
    connect(era);
  };
  view.onCall = (tool, input) => void session?.call(tool, input);
  view.onRead = (uri) => void session?.read(uri);
  connect(new URLSearchParams(location.search).get("era") === "modern" && way !== "gateway" ? "modern" : "legacy");
}

startConsole();
