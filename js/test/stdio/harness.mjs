/**
 * The engine as a process: builds the command e2e/stdio once, and gives the parameters by which a stdio transport
 * starts it. The transports and clients themselves are the official ones, unmodified; nothing here speaks MCP.
 */
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

export const origin = "https://x.test";

/** Builds the command into a directory of its own, that remove() deletes. */
export async function build() {
  const dir = await mkdtemp(join(tmpdir(), "pagewire-stdio-"));
  const command = join(dir, process.platform === "win32" ? "stdio.exe" : "stdio");
  await promisify(execFile)("go", ["build", "-o", command, "./e2e/stdio"], {
    cwd: fileURLToPath(new URL("../../..", import.meta.url)),
  });
  let journals = 0;
  return {
    /** What a transport needs to start the command, and a look at what became of all processes started so. */
    server() {
      const journal = join(dir, `journal${journals++}`);
      return {
        parameters: { command, args: ["-journal", journal] },
        /** How each process ended, by its id; "began" if it did not end by itself. */
        async fates() {
          const fates = new Map();
          for (const line of (await readFile(journal, "utf8")).trim().split("\n")) {
            const [pid, what] = line.split(" ");
            fates.set(Number(pid), what);
          }
          return fates;
        },
      };
    },
    remove: () => rm(dir, { recursive: true }),
  };
}

/** Resolves as soon as condition() does to something true, and fails when it has not for 90 s. */
export async function until(condition, what) {
  for (const end = Date.now() + 90_000; ; await sleep(5)) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > end) throw new Error(`still not so after 90 s: ${what}`);
  }
}

/** Whether a process is there. */
export function alive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    if (error.code === "ESRCH") return false;
    throw error;
  }
}

export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
