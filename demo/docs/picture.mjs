// README's picture, ../story.gif, and ../story.png for those who want no motion: Chromium's
// screencast of demo 1, in which a person types and selects, and the agent beside the page is told
// and reads.
//
//   node picture.mjs CHROMIUM    after make build; make pictures does so
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { chromium } from "playwright-core";
import sharp from "sharp";

const size = { width: 1100, height: 620 };
const dist = path.resolve(import.meta.dirname, "../../dist");
const browser = await chromium.launch({ executablePath: process.argv[2], args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: size, colorScheme: "light", reducedMotion: "reduce" });
await page.route("**", (route) => route.fulfill({ path: path.join(dist, new URL(route.request().url()).pathname) }));
await page.goto("http://127.0.0.1/demo/1-live-document/index.html");
await page.locator("html[data-agent=subscribed]").waitFor();
await page.locator("main").evaluate((main) => main.scrollIntoView());
const text = page.locator("#document-text");
await text.click();
await page.keyboard.press("Control+End");

const frames = [];
const cast = await page.context().newCDPSession(page);
cast.on("Page.screencastFrame", ({ data, metadata, sessionId }) => {
  frames.push({ image: Buffer.from(data, "base64"), at: metadata.timestamp });
  cast.send("Page.screencastFrameAck", { sessionId });
});
await cast.send("Page.startScreencast", { format: "png" });
const agent = page.locator("#agent");
await page.waitForTimeout(1500);
await text.pressSequentially(" and milk", { delay: 150 });
await agent.getByText("apples and milk").first().waitFor();
await page.waitForTimeout(2500);
const still = frames.at(-1).image;
for (let n = 0; n < "milk".length; n++) await page.keyboard.press("Shift+ArrowLeft", { delay: 150 });
await agent.getByText('"text":"milk"').or(agent.getByText('"text": "milk"')).first().waitFor();
await page.waitForTimeout(3000);
await cast.send("Page.stopScreencast");

// The pictures of the extension for stores: the page, and the popup that a test has taken.
await page.setViewportSize({ width: 1280, height: 800 });
const behind = await page.screenshot();
await browser.close();
await mkdir(path.join(dist, "pictures"), { recursive: true });
for (const [name, popup] of Object.entries({ asks: "extension-popup-asks", allowed: "extension-popup" })) {
  const input = path.resolve(import.meta.dirname, `../${popup}-light.png`);
  await sharp(behind)
    .composite([{ input, left: 1280 - 360 - 24, top: 24 }])
    .toFile(path.join(dist, `pictures/store-${name}.png`));
}

// A frame is shown until the next one, and for as long as a GIF can say: 20 ms at least.
const shown = frames.filter(({ at }, i) => i === frames.length - 1 || frames[i + 1].at - at >= 0.02);
const delay = shown.map(({ at }, i) => Math.round(((shown[i + 1]?.at ?? at + 3) - at) * 1000));
const out = path.resolve(import.meta.dirname, "..");
const animation = sharp(
  shown.map(({ image }) => image),
  { join: { animated: true } },
);
const { size: bytes } = await animation
  .gif({ delay, loop: 0, colours: 128, dither: 0 })
  .toFile(path.join(out, "story.gif"));
await sharp(still).png({ palette: true }).toFile(path.join(out, "story.png"));
console.log(`picture: ${shown.length} frames, ${delay.reduce((a, b) => a + b) / 1000} s, ${bytes} bytes`);
