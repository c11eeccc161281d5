// The plugin for opencode. `pagewire config opencode --live` writes it, with the command lines of
// its machine instead of these.
const pagewire = "pagewire";
const changes = ["changes"];
const watch = ["watch"];
// ---
import { execFile, spawn } from "node:child_process";
import { createInterface } from "node:readline";

// The changes since this program's last call; "" for none.
const changed = (...more) =>
  new Promise((tell) => {
    execFile(pagewire, [...changes, ...more], { timeout: 5000 }, (error, out) => tell(error ? "" : out.trim()));
  });

export const Pagewire = async ({ client }) => {
  const children = new Set(); // sessions of subagents, which it never wakes
  const lines = []; // of the watch; they count as seen by the agent
  let session; // the session with the latest prompt
  let busy = false;

  const news = async () => [...lines.splice(0), await changed("--session", session)].filter(Boolean).join("\n");

  const wake = async () => {
    if (busy || !session || lines.length === 0) return;
    busy = true;
    const body = { parts: [{ type: "text", text: await news(), synthetic: true }] };
    await client.session.prompt({ path: { id: session }, body }).catch(() => {
      busy = false;
    });
  };

  // The watch waits for a daemon, and prints a line about changes that this program has not seen.
  const watcher = spawn(pagewire, watch, { stdio: ["ignore", "pipe", "ignore"] });
  watcher.on("error", () => {}); // the binary is gone
  createInterface({ input: watcher.stdout }).on("line", (line) => {
    lines.push(line);
    if (lines.length > 20) lines.shift(); // the user has been silent for ten minutes
    wake();
  });
  process.once("exit", () => watcher.kill());

  return {
    event: async ({ event }) => {
      const of = event.properties?.sessionID ?? event.properties?.info?.id;
      if (event.type === "session.created" && event.properties.info?.parentID) children.add(of);
      if (event.type === "session.deleted" && of === session) session = undefined;
      if (event.type === "session.compacted") await changed("--forget", "--session", of);
      if (event.type === "session.idle" && of === session) {
        busy = false;
        await wake();
      }
    },
    "chat.message": async ({ sessionID }, { message, parts }) => {
      if (children.has(sessionID)) return;
      session = sessionID;
      busy = true;
      const text = await news();
      if (!text) return;
      parts.push({
        id: `prt_${message.id.slice(4)}pagewire`,
        sessionID,
        messageID: message.id,
        type: "text",
        text,
        synthetic: true,
      });
    },
  };
};
