/**
 * The agent console: an MCP client that watches this page, and a view of all that it sees.
 *
 * console/session.ts is the agent, and is what an agent that lives elsewhere would do too; console/view.ts draws;
 * console/tap.ts lets the view see the raw messages. This file puts them together, and starts over when the person
 * picks the other protocol version. `?era=legacy` or `?era=modern` picks one from the start.
 */
import { Session, type Era } from "./console/session.ts";
import { tapped } from "./console/tap.ts";
import { View } from "./console/view.ts";

const view = new View();
let session: Session | undefined;
/** Runs after the switches before it, so that two quick ones do not leave two sessions. */
let last: Promise<void> = Promise.resolve();

function connect(era: Era): void {
  last = last.then(async () => {
    await session?.close();
    view.reset(era);
    try {
      const transport = tapped(pagewire.connect(), (direction, message) => view.message(direction, message));
      session = new Session(era, transport, view);
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
connect(new URLSearchParams(location.search).get("era") === "modern" ? "modern" : "legacy");
