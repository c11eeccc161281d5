// The number of open tabs that offer agents nothing: what leaves the browser, and when.
import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { eventually, turn } from "./browser.mjs";
import { TabCount } from "../../../dist/test/extension.mjs";

mock.timers.enable({ apis: ["setTimeout"] });
const secret = { title: "secret", url: "https://bank.test/secret?token=secret#secret" };
const open = [
  { id: 1, url: "chrome://settings/", title: "Settings" },
  { id: 2, url: "https://shop.test/", title: "offers something" },
  { id: 3, ...secret },
  { id: 4, url: "https://ci.test/run", title: "x".repeat(999) },
  { id: 5, title: "no address" },
  { id: 6, ...secret, title: "private", incognito: true },
];
const offers = new Set([2]);
const targets = new Map([[4, "cdp:FOUR"]]);
let queries = 0;
chrome.tabs.query = async () => {
  queries++;
  return structuredClone(open);
};
const tabs = new TabCount({ offers: (tab) => offers.has(tab), target: (tab) => targets.get(tab) });
const frames = [];
let closed;
const begin = () =>
  tabs.link((id) => `tab-${id}`, { frame: (text) => frames.push(JSON.parse(text)), closed: (why) => (closed = why) });
const settle = async () => {
  for (let i = 0; i < 20; i++) {
    mock.timers.tick(100);
    await turn();
  }
};

test("only a number leaves the browser, and no names until they are asked for", async () => {
  tabs.follow(true);
  const link = begin();
  assert.deepEqual(frames, [], "a transport knows the link only after that");
  await settle();
  const [[[hello, , , about]], report] = frames;
  assert.deepEqual([hello, about.origin], ["hello", "pagewire://tabs"]);
  assert.deepEqual(report, { count: 2, targets: ["cdp:FOUR"] });
  chrome.tabs.onUpdated.tell(3, { title: "another" });
  await settle();
  assert.equal(frames.length, 2, "what has not changed is told again");
  offers.add(4);
  tabs.follow(true);
  await settle();
  assert.deepEqual(frames[2], { count: 1, targets: [] });
  assert.ok(!JSON.stringify(frames).includes("secret"));
  offers.delete(4);
  link.send('"name"');
  await eventually("they are named", () => frames.length >= 4);
  assert.deepEqual(frames.at(-1).named, [
    { title: "secret", url: "https://bank.test/secret", target: "" },
    { title: "x".repeat(300), url: "https://ci.test/run", target: "cdp:FOUR" },
  ]);
  for (let id = 100; id < 999; id++) open.push({ id, ...secret });
  link.send('"name"');
  await eventually("some are named", () => frames.at(-1).named?.length === 200);
  open.length = 3;
  const { query } = chrome.tabs;
  chrome.tabs.query = async () => {
    throw new Error("Tabs cannot be queried right now (user may be dragging a tab).");
  };
  link.send('"name"');
  await eventually("it is answered", () => frames.at(-1).named?.length === 0);
  chrome.tabs.query = query;
  link.refuse("too much");
  assert.equal(closed, "too much");
  const told = frames.length;
  link.send('"name"');
  chrome.tabs.onRemoved.tell(3);
  await settle();
  assert.equal(frames.length, told, "a link that has ended tells");
});

test("titles that tick have the tabs counted once in two seconds", async () => {
  const link = begin();
  await settle();
  const before = queries;
  for (let i = 0; i < 100; i++) {
    chrome.tabs.onUpdated.tell(3, { title: `${i}` });
    mock.timers.tick(100);
    await turn();
  }
  assert.ok(queries > before && queries - before <= 6, `${queries - before} looks in 10 s`);
  link.close();
  const told = frames.length;
  const next = begin();
  await eventually("the next link is greeted, without a pause", () => frames.length > told);
  assert.deepEqual(frames[told][0][0], "hello");
  next.close();
  await settle();
});

test("after Stop all sites nothing is counted", async () => {
  const link = begin();
  await settle();
  tabs.follow(false);
  const [before, asked] = [frames.length, queries];
  open.push({ id: 7, ...secret });
  for (const event of [chrome.tabs.onUpdated, chrome.tabs.onRemoved]) {
    assert.equal(event.listeners.length, 0);
    event.tell(7);
  }
  await settle();
  assert.deepEqual([frames.length, queries], [before, asked]);
  link.send('"name"');
  await eventually("nothing is named", () => frames.length > before);
  assert.deepEqual(frames.at(-1), { named: [] });
});
