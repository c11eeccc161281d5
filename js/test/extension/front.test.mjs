// The tab in front: nothing of a private window leaves the browser, also if the user lets the extension run there.
import assert from "node:assert/strict";
import { test } from "node:test";
import { eventually } from "./browser.mjs";
import { FrontTab } from "../../../dist/test/extension.mjs";

test("a private window in front is told as no page", async () => {
  const frames = [];
  Object.assign(chrome.tabs, { onActivated: chrome.tabs.onUpdated });
  chrome.tabs.query = async () => [
    { id: 6, windowId: 2, url: "https://clinic.test/result", title: "private", active: true, incognito: true },
  ];
  chrome.windows = { get: async () => ({ focused: true }), onFocusChanged: chrome.tabs.onUpdated };
  const front = new FrontTab({ admits: async () => false, profile: () => "" }); // the user has not allowed the site
  front.follow(true);
  front.link((id) => `tab-${id}`, { frame: (text) => frames.push(text), closed() {} });
  await eventually("it reports", () => frames.length === 2);
  assert.doesNotMatch(frames.join(), /clinic|title.*private|result/, frames[1]);
  front.follow(false);
});
