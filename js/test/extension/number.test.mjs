// Pagewire's own service worker, dist/extension/worker.js, in a browser that has no native host any
// more, and no gateway.
import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { call, eventually, port, runtime, turn } from "./browser.mjs";

mock.timers.enable({ apis: ["setTimeout", "setInterval"] }); // the worker's pauses would keep this process
mock.method(console, "warn", () => {});

const origin = "https://a.test";
const event = { addListener() {}, removeListener() {} };
const done = async () => {};
const area = (kept) => ({ get: async () => kept, set: done });
const native = [];
Object.assign(runtime, {
  connectNative() {
    const host = port("host");
    native.push(host);
    return host.end;
  },
  onInstalled: event,
  onStartup: event,
});
Object.assign(chrome, {
  storage: { local: area({ origins: [origin], secret: "of a host that was removed" }), session: area({}) },
  scripting: {
    getRegisteredContentScripts: async () => [],
    registerContentScripts: done,
    unregisterContentScripts: done,
  },
  action: { setBadgeText: done, setTitle: done, setBadgeBackgroundColor: done },
});
const dialled = [];
globalThis.WebSocket = class {
  constructor(url) {
    dialled.push(url);
    void Promise.resolve().then(() => this.onclose({ reason: "" }));
  }
  close() {}
};
await import("../../../dist/extension/worker.js");

const pass = async (seconds) => {
  for (let i = 0; i < seconds; i++) {
    mock.timers.tick(1000);
    for (let i = 0; i < 5; i++) await turn();
  }
};

test("no port is dialled for the number of tabs alone", async () => {
  await eventually("a native host is asked for, for the number", () => native.length === 1);
  runtime.lastError = { message: "Specified native messaging host not found." };
  native[0].leave();
  runtime.lastError = undefined;
  await pass(50);
  assert.deepEqual(dialled, []);
  assert.ok(chrome.tabs.onUpdated.listeners.length === 0, "tabs are counted for nobody");

  const page = call(origin);
  page.say({ offers: 1 });
  await eventually("the page and the number are offered", () => dialled.length >= 2);
  page.leave();
  await pass(1);
  const before = dialled.length;
  await pass(50);
  assert.equal(dialled.length, before, "a port is dialled on and on");
});
