// Pagewire's own service worker, dist/extension/worker.js, with a storage that fails.
import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { call, eventually, port, runtime, turn } from "./browser.mjs";

mock.timers.enable({ apis: ["setTimeout"] }); // the worker's pauses would keep this process
mock.method(console, "error", () => {});

/** Whether the browser's storage takes values, as it does not when the disk is full. */
let full = false;
const area = (kept = {}) => ({
  get: async () => kept,
  async set() {
    if (full) throw new Error("No space left on device");
  },
});
const origin = "https://a.test";
const event = { addListener() {}, removeListener() {} };
const done = async () => {};
const host = port("host");
Object.assign(runtime, { connectNative: () => host.end, onInstalled: event, onStartup: event });
Object.assign(chrome, {
  storage: { local: area({ origins: [origin] }), session: area() },
  scripting: {
    getRegisteredContentScripts: async () => [],
    registerContentScripts: done,
    unregisterContentScripts: done,
  },
  action: { setBadgeText: done, setTitle: done, setBadgeBackgroundColor: done },
});
await import("../../../dist/extension/worker.js");

/** The extension's options page. (Node knows no origin of an extension's URL.) */
const options = port("pagewire.panel", { id: "ours", origin: new URL(runtime.getURL("")).origin });
runtime.onConnect.tell(options.end);

/** A document of the allowed origin, which is linked with a gateway. */
async function linked() {
  const page = call(origin);
  page.say({ offers: 1 });
  const opened = () => host.said.findLast(({ type, id }) => type === "close" || (type === "open" && id < 2 ** 40));
  await eventually("it is offered", () => opened()?.type === "open");
  host.say({ type: "open", id: opened().id, session: 1 });
  assert.ok(page.started());
  return page;
}

for (const request of [
  { do: "stop", on: true },
  { do: "revoke", what: "offers", origin },
])
  test(`${request.do} ends the links, also if it cannot be stored`, async (t) => {
    const page = await linked();
    t.after(async () => {
      full = false;
      page.leave();
      options.say({ do: "stop", on: false });
      await turn();
    });
    full = true;
    options.say(request);
    for (let i = 0; i < 20; i++) await turn();
    assert.ok(page.said.includes(null));
    const shown = options.said.at(-1);
    assert.ok(shown.on.stop || !shown.origins.length);
  });
