#!/usr/bin/env node
/**
 * dist/npm/cli.js: `npx pagewire serve` runs the program of this platform. That is in a package of
 * its own, which npm installs as an optional dependency (@pagewire/cli-linux-x64 and so on). This
 * script downloads nothing, and nothing runs at installation.
 */
import { spawn } from "node:child_process";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { platform, arch } = process;
const name = `@pagewire/cli-${platform}-${arch}`;

/**
 * The path of the program. If it is missing, prints the reason and what to do, and exits with
 * status 1.
 */
function find(): string {
  try {
    return require.resolve(`${name}/bin/pagewire${platform === "win32" ? ".exe" : ""}`);
  } catch {
    const { optionalDependencies } = require("./package.json");
    const [what, todo] =
      name in optionalDependencies
        ? [
            `${name}, which holds the program, is not installed`,
            "install pagewire on this machine, without --omit=optional: npm install pagewire",
          ]
        : [
            `there is no program for ${platform} on ${arch}`,
            "build it: go install github.com/pagewire/pagewire/bridge/cmd/pagewire@latest",
          ];
    console.error(`pagewire: ${what}\npagewire: ${todo}`);
    process.exit(1);
  }
}

if (process.argv.length === 2 && process.env.npm_command === "exec")
  console.error("npx keeps this program only for a time. To install it: npm install -g pagewire\n");

const program = spawn(find(), process.argv.slice(2), { stdio: "inherit" });
program.on("error", (error) => {
  console.error(`pagewire: ${name} does not start: ${error.message}`);
  process.exit(1);
});
// Ignored, not forwarded: a terminal sends these to the program too, and a second signal would end
// it at once.
for (const signal of ["SIGINT", "SIGHUP"]) process.on(signal, () => {});
process.on("SIGTERM", () => program.kill("SIGTERM"));
program.on("exit", (status, signal) => {
  if (!signal) process.exit(status ?? 1);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
