// README's picture, ../story.gif, and ../story.png for those who want no motion: a page that knows
// nothing of Pagewire (demo/ci), and beside it an agent, whom a person asks to watch it. What the
// agent reads and is told is what `pagewire serve` has sent it; only the words of the two are
// written here. It also draws the extension's icons from the logo, and the stores' pictures.
//
//   node picture.mjs CHROMIUM    after make build; make pictures does so
import { spawn } from "node:child_process";
import { mkdtemp, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";
import sharp from "sharp";

const root = path.resolve(import.meta.dirname, "../..");
const at = (name) => path.join(root, name);
const from = createRequire(at("js/package.json"));
const { Client } = from("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = from("@modelcontextprotocol/sdk/client/stdio.js");

const logo = await readFile(at("js/parts/logo.svg"));
for (const size of [16, 32, 128])
  await sharp(logo, { density: (72 * size) / 32 })
    .resize(size)
    .png({ palette: true })
    .toFile(at(`js/extension/icon-${size}.png`));

// The site with the CI run.
const served = spawn("go", ["run", "./demo", "-story=false", "-addr", "127.0.0.1:0"], { cwd: root, detached: true });
process.on("exit", () => process.kill(-served.pid));
const link = /http:\/\/\S+\/runs\/4821/;
let run;
for await (const line of createInterface({ input: served.stdout })) if ((run = link.exec(line)?.[0])) break;
const status = (name) => ci.evaluate((name) => fetch(`${location.pathname}/browser`, { method: name }), name);

const debugging = 9300 + (process.pid % 500);
const browser = await chromium.launch({
  executablePath: process.argv[2],
  args: ["--no-sandbox", `--remote-debugging-port=${debugging}`],
});
const looks = { colorScheme: "light", reducedMotion: "reduce" };
const [width, height, left] = [1000, 560, 510];
const ci = await browser.newPage({ ...looks, viewport: { width: 550, height: 562 } });
await ci.goto(run);

// The agent.
const home = await mkdtemp(path.join(tmpdir(), "pagewire-"));
const agent = new Client({ name: "picture", version: "1" });
const chrome = ["--chrome", `http://127.0.0.1:${debugging}`, "--shown", new URL(run).origin];
await agent.connect(
  new StdioClientTransport({
    command: at("bin/pagewire"),
    args: ["serve", "--hub", `127.0.0.1:${debugging + 500}`, ...chrome, "--log-level", "warn"],
    env: { ...process.env, XDG_CONFIG_HOME: home },
  }),
);
const call = async (name, args = {}) =>
  (await agent.callTool({ name, arguments: args })).content.map(({ text }) => text).join("\n");
const uri = `${new URL(run).origin}/.pagewire/shown`;
while (!(await call("list_page_resources")).includes(uri)) await new Promise((done) => setTimeout(done, 50));

// The scene: two windows, the left one with the page's picture, the right one with what is said.
const scene = await browser.newPage({ ...looks, viewport: { width, height } });
await scene.setContent(`<style>${await readFile(at("js/parts/tokens.css"), "utf8")}
  * { box-sizing: border-box; margin: 0 }
  body { display: grid; grid-template: ${height - 30}px / ${left - 30}px 1fr; gap: 14px; padding: 15px; height: ${height}px;
    background: var(--panel); color: var(--ink); font: 16px/1.45 var(--sans) }
  section { overflow: hidden; border: 1px solid var(--line); border-radius: 12px; background: var(--paper) }
  h2 { display: flex; gap: 8px; align-items: center; height: 38px; padding: 0 14px; border-bottom: 1px solid var(--line);
    background: var(--inset); color: var(--dim); font-size: 14px; font-weight: 500 }
  h2 svg { width: 20px } img { display: block; width: 100% }
  i { width: 10px; height: 10px; border-radius: 5px; background: var(--line) }
  #said { display: grid; gap: 12px; padding: 16px }
  #said p { width: fit-content; max-width: 92% }
  .person { justify-self: end; padding: 8px 14px; border-radius: 14px; background: var(--selected) }
  .tool { color: var(--dim); font-size: 14px } .tool b { color: var(--accent); font-weight: 600 }
  pre { padding: 10px 12px; border-left: 3px solid var(--accent); border-radius: 6px; background: var(--inset);
    font: 14.5px/1.6 var(--mono); white-space: pre-wrap }
  del { color: var(--error); text-decoration: none } ins { color: var(--accent); text-decoration: none; font-weight: 600 }
  </style>
  <section><h2><i></i><i></i><i></i>&nbsp;A page that nobody changed for agents</h2><img></section>
  <section><h2>${String(logo)} An agent, with Pagewire</h2><div id="said"></div></section>`);
const frames = [];
const show = async (ms) => {
  const page = (await ci.screenshot({ type: "png" })).toString("base64");
  await scene.locator("img").evaluate(async (img, page) => {
    img.src = `data:image/png;base64,${page}`;
    await img.decode();
  }, page);
  frames.push({ image: await scene.screenshot({ type: "png" }), ms });
};
const say = (kind, html) =>
  scene.locator("#said").evaluate(
    (said, [kind, html]) => {
      said.insertAdjacentHTML("beforeend", `<p class="${kind}">${html}</p>`);
    },
    [kind, html],
  );
const quote = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

await show(1200);
const wish = "Watch my CI run. If browser fails, look into it.";
await say("person", "");
for (let n = 4; n < wish.length + 4; n += 4) {
  await scene.locator(".person").evaluate((p, text) => (p.textContent = text), wish.slice(0, n));
  await show(110);
}
await show(900);
const read = await call("read_page_resource", { uri });
const { revision } = JSON.parse(read.split("\n", 1)[0]);
const lines = read.trimEnd().split("\n").length - 1;
await say("tool", `<b>read</b> the page: ${lines} lines of text`);
await show(1300);
await say("tool", "<b>waits</b> for a change, in one call");
await show(1800);
const told = call("wait_for_page_update", { uris: [uri], since: revision });
await status("POST"); // "Re-run failed jobs": it fails a while later
await ci.getByRole("cell", { name: "Failed" }).waitFor();
await show(1300);
const change = (await told).split("\n").filter((line) => /^[-+]\|/.test(line));
if (change.length !== 2) throw new Error(`the agent was told ${await told}`);
const marked = change.map((line) => (line[0] === "-" ? `<del>${quote(line)}</del>` : `<ins>${quote(line)}</ins>`));
await say("tool", "<b>was told</b> what changed, and nothing else:");
await say("", `<pre>${marked.join("\n")}</pre>`);
await show(2600);
await say("", "<b>browser</b> failed. I'm reading its log.");
await show(4000);

// The pictures of the extension, which a test has taken, and those for stores: a demo behind it.
for (const screen of ["popup-asks", "popup-preview", "panel"])
  for (const theme of ["light", "dark"])
    await sharp(at(`dist/pictures/extension-${screen}-${theme}.png`))
      .png({ palette: true })
      .toFile(at(`demo/extension-${screen}-${theme}.png`));
const behind = await browser.newPage({ ...looks, viewport: { width: 1280, height: 800 } });
await behind.route("**", (route) => route.fulfill({ path: at(`dist${new URL(route.request().url()).pathname}`) }));
await behind.goto("http://127.0.0.1/demo/1-live-document/index.html");
await behind.locator("html[data-agent=subscribed]").waitFor();
for (const [name, popup] of Object.entries({ asks: "extension-popup-asks", allowed: "extension-popup" }))
  await sharp(await behind.screenshot())
    .composite([{ input: at(`dist/pictures/${popup}-light.png`), left: 1280 - 345 - 24, top: 24 }])
    .toFile(at(`dist/pictures/store-${name}.png`));
await agent.close();
await browser.close();

const delay = frames.map(({ ms }) => ms);
const join = { join: { animated: true } };
const { size } = await sharp(
  frames.map(({ image }) => image),
  join,
)
  .gif({ delay, loop: 0, colours: 128, dither: 0 })
  .toFile(at("demo/story.gif"));
await sharp(frames.at(-1).image).png({ palette: true }).toFile(at("demo/story.png"));
console.log(`picture: ${frames.length} frames, ${delay.reduce((a, b) => a + b) / 1000} s, ${size} bytes`);
process.exit();
