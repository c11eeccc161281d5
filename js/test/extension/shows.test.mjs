// What tabs show, in the extension's worker: when something runs in a tab, for whom, and who may
// speak for it.
import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { eventually, port, runtime, turn } from "./browser.mjs";
import { Picked, Picking, Share, Shows, Targets, viewOn } from "../../../dist/test/extension.mjs";

const origin = "https://ci.test";
const uri = `${origin}/.pagewire/shown`;

const event = () => {
  const listeners = new Set();
  return {
    addListener: (listener) => listeners.add(listener),
    removeListener: (listener) => listeners.delete(listener),
    tell: (...args) => listeners.forEach((listener) => listener(...args)),
    listeners,
  };
};

Object.assign(chrome.tabs, { onUpdated: event(), onActivated: event(), onRemoved: event() });
const refused = [];
const kept = {};
chrome.storage = { session: { get: async () => kept, set: async (what) => void Object.assign(kept, what) } };
const targets = new Targets((tab) => shows.known(tab));
const user = { refuse: (why) => refused.push(why), profile: () => "", target: (tab) => targets.of(tab) };
const shows = new Shows(user, () => {});

/** A browser with one tab. */
function browse(url = `${origin}/run`) {
  const tab = { id: 7, windowId: 1, url: `${url}?token=secret#secret`, title: "Run" };
  const tabs = new Map([[7, tab]]);
  const ran = [];
  chrome.tabs.query = async () => [...tabs.values()].map((one) => ({ ...one }));
  chrome.tabs.get = async (id) => {
    if (!tabs.has(id)) throw new Error("No tab");
    return { ...tabs.get(id) };
  };
  chrome.scripting = { executeScript: async (what) => void ran.push(what) };
  return { tab, tabs, ran };
}

/** The reader in a document of the tab calls. */
function reader(sender = {}) {
  const p = port("pagewire.shown", { id: "ours", tab: { id: 7 }, frameId: 0, origin, ...sender });
  runtime.onConnect.tell(p.end);
  return p;
}

/** The tab's site is granted, and a gateway is at the other end. */
async function granted() {
  const b = browse();
  shows.allow([origin]);
  await eventually("the tab is there", () => shows.list().length === 1);
  const [one] = shows.list();
  const frames = [];
  let closed;
  const link = one.link((id) => `tab-${id}`, { frame: (text) => frames.push(text), closed: (why) => (closed = why) });
  await eventually("it has introduced itself", () => frames.length === 2);
  const calls = () => frames.filter((frame) => frame[0] === "[").flatMap((frame) => JSON.parse(frame));
  const say = (...call) => link.send(JSON.stringify([call]));
  return { ...b, one, link, frames, calls, say, closed: () => closed };
}

test("nothing runs in a tab until an agent reads", async () => {
  const { one, ran, frames, calls, say } = await granted();
  const [hello, register, tools] = calls();
  assert.deepEqual(hello.slice(0, 2), ["hello", 1]);
  const { shown, tab, frame, url } = hello[3];
  assert.deepEqual({ shown, tab, frame, url }, { shown: true, tab: "tab-7", frame: "", url: `${origin}/run` });
  assert.equal(JSON.parse(register[1]).uri, uri);
  assert.deepEqual(tools, ["setTools", "[]"]);
  for (let i = 0; i < 20; i++) await turn();
  assert.deepEqual(ran, []);
  const early = reader();
  assert.ok(early.ended, "a reader that nobody asked for is served");

  say("read", 5, uri, uri, '{"from":3}');
  await eventually("the reader runs", () => ran.length === 1);
  assert.deepEqual([ran[0].target, ran[0].files], [{ tabId: 7 }, ["shown.js"]]);
  const r = reader();
  const [ask] = r.said;
  assert.deepEqual({ ...ask, read: 0 }, { read: 0, from: 3, links: false });
  r.say({ call: ask.read, text: "title: é" });
  await eventually("it is answered", () => frames.length === 3);
  assert.equal(frames[2], `=5 0 ${JSON.stringify([{ uri, mimeType: "text/markdown", text: "title: é" }])}`);
  say("read", 6, uri, uri, "");
  await eventually("the same reader reads on", () => r.said.length === 2);
  r.say({ call: r.said[1].read });
  await eventually("what cannot be read is answered", () =>
    calls().some(([name, id]) => name === "complete" && id === 6),
  );
  assert.equal(ran.length, 1);
  assert.equal(one.admitted, true);
  shows.allow([]);
});

test("a reader of another origin, or of a frame, does not speak for the tab", async () => {
  const { say, frames } = await granted();
  say("read", 5, uri, uri, "");
  for (const sender of [
    { origin: "https://evil.test" },
    { origin: undefined },
    { frameId: 3 },
    { tab: { id: 8 } },
    { tab: undefined },
    { id: "another extension" },
  ]) {
    const r = reader(sender);
    assert.ok(r.ended, JSON.stringify(sender));
    assert.deepEqual(r.said, []);
    r.say({ call: 1, text: "forged" });
  }
  for (let i = 0; i < 20; i++) await turn();
  assert.equal(frames.length, 2);
  shows.allow([]);
});

test("a watch outlives the document, and its successor is a change", async () => {
  const { tab, ran, calls, say } = await granted();
  const touches = () => calls().filter(([name]) => name === "touch");
  say("watched", uri, true);
  await eventually("the reader runs", () => ran.length === 1);
  assert.deepEqual(touches(), [["touch", uri, 0]]);
  const r = reader();
  assert.deepEqual(r.said, [{ watch: true }]);
  r.say("changed");
  assert.deepEqual(touches().at(-1), ["touch", uri, 1]);
  r.say({ wait: 4, ms: 0 });
  await eventually("it is woken", () => r.said.some(({ wake }) => wake === 4));
  tab.url = `${origin}/other`;
  r.leave();
  assert.deepEqual(touches().at(-1), ["touch", uri, 2]);
  await eventually("the reader runs in the next document", () => ran.length === 2);
  const next = reader();
  assert.deepEqual(next.said, [{ watch: true }]);
  r.say("changed");
  assert.equal(touches().at(-1)[2], 2, "a document that has gone is heard");
  say("watched", uri, false);
  assert.deepEqual(next.said.at(-1), { watch: false });
  shows.allow([]);
});

test("a document that could not be read is read when the tab has another", async () => {
  const { ran, say } = await granted();
  const { executeScript } = chrome.scripting;
  chrome.scripting.executeScript = async () => {
    throw new Error("Frame with ID 0 is showing error page");
  };
  say("watched", uri, true);
  for (let i = 0; i < 20; i++) await turn();
  chrome.scripting.executeScript = executeScript;
  chrome.tabs.onUpdated.tell(7, { status: "complete" });
  await eventually("the reader runs", () => ran.length === 1);
  assert.ok(!reader().ended);
  shows.allow([]);
});

for (const [what, leave] of [
  ["the user revokes the site", () => shows.allow([])],
  [
    "the tab shows another site",
    ({ tab }) => {
      tab.url = "https://other.test/";
      chrome.tabs.onUpdated.tell(7, { status: "loading" });
    },
  ],
  [
    "the tab is closed",
    ({ tabs }) => {
      tabs.delete(7);
      chrome.tabs.onRemoved.tell(7);
    },
  ],
])
  test(`${what} while an agent waits`, async () => {
    const all = await granted();
    const { one, say, frames, ran } = all;
    say("watched", uri, true);
    await eventually("the reader runs", () => ran.length === 1);
    const r = reader();
    say("read", 5, uri, uri, "");
    await eventually("it is asked", () => r.said.length === 2);
    const before = frames.length;
    leave(all);
    await eventually("the tab is not shown any more", () => !shows.list().length);
    assert.equal(one.admitted, false);
    assert.deepEqual([r.said.at(-1), r.ended], ["stop", true]);
    r.say({ call: r.said[1].read, text: "too late" });
    r.say("changed");
    for (let i = 0; i < 20; i++) await turn();
    assert.equal(frames.length, before);
    assert.throws(() => one.link(String, {}));
    shows.allow([]);
    for (const { listeners } of [chrome.tabs.onUpdated, chrome.tabs.onActivated, chrome.tabs.onRemoved])
      assert.equal(listeners.size, 0, "tabs of no site are followed");
  });

test("a reader that tells too much is refused", async () => {
  const { say, ran, closed } = await granted();
  say("watched", uri, true);
  await eventually("the reader runs", () => ran.length === 1);
  const r = reader();
  for (let i = 0; i < 200; i++) r.say("changed");
  assert.equal(refused.length, 1);
  assert.equal(closed(), refused[0]);
  assert.deepEqual([r.ended, shows.list().length], [true, 0]);
  shows.allow([]);
});

test("an agent may read as often as it likes", async () => {
  const { say, ran, frames, closed } = await granted();
  for (let i = 1; i <= 300; i++) say("read", i, `${uri}?from=${i}`, uri, `{"from":${i}}`);
  await eventually("the reader runs", () => ran.length === 1);
  const r = reader();
  const before = refused.length;
  for (const { read } of [...r.said]) r.say({ call: read, text: `of ${read}` });
  await eventually("all are answered", () => frames.length === 302 || closed());
  assert.deepEqual([closed(), shows.list().length], [undefined, 1]);
  for (const { read } of [...r.said, ...r.said]) r.say({ call: read, text: "again" });
  assert.equal(refused.length, before + 1, "answers that nobody waits for are free");
  shows.allow([]);
});

for (const [what, next] of [
  ["leaves and comes again", (r) => r.leave()],
  ["comes again and does not leave", () => {}],
])
  test(`a reader that ${what} without an end is refused`, async () => {
    const { say, ran, closed } = await granted();
    say("watched", uri, true);
    await eventually("the reader runs", () => ran.length === 1);
    const before = refused.length;
    let times = 0;
    for (; times < 300 && !closed(); times++) {
      next(reader());
      for (let i = 0; i < 5; i++) await turn();
    }
    assert.equal(closed(), refused.at(-1));
    assert.equal(refused.length, before + 1);
    assert.ok(times > 5, "a page that leads on to others is refused");
    assert.ok(ran.length < 50, `it ran ${ran.length} times`);
    shows.allow([]);
  });

test("the user looks at what agents would read, and agents get nothing", async () => {
  const { ran, tab } = browse();
  const look = shows.preview(7);
  await eventually("the reader runs", () => ran.length === 1);
  const r = reader();
  r.say({ call: r.said[0].read, text: "lines" });
  assert.deepEqual(await look, { origin, text: "lines" });
  assert.deepEqual([r.said.at(-1), r.ended, shows.list().length], ["stop", true, 0]);
  tab.url = "chrome://settings/";
  assert.deepEqual(await shows.preview(7), { origin: "" });
  assert.equal(ran.length, 1);
});

const part = { path: "/run", find: [{ css: "#jobs" }], as: "table" };
const partURI = `${origin}/.pagewire/parts/jobs`;
const picked = (parts) => ({
  origins: () => [origin],
  at: (_, url) => (url.split("?")[0] === `${origin}/run` ? parts : {}),
});

test("a part is for agents without all else, and is read and told of alone", async () => {
  const { ran, tab } = browse();
  shows.allow([], picked({ jobs: part }));
  await eventually("the tab is there", () => shows.list().length === 1);
  const [one] = shows.list();
  const frames = [];
  const link = one.link(String, { frame: (text) => frames.push(text), closed() {} });
  await eventually("it has introduced itself", () => frames.length === 2);
  const calls = () => frames.filter((frame) => frame[0] === "[").flatMap((frame) => JSON.parse(frame));
  const say = (...call) => link.send(JSON.stringify([call]));
  const registered = () => calls().flatMap(([name, text]) => (name === "register" ? JSON.parse(text) : []));
  assert.deepEqual(
    registered().map(({ uri, mimeType }) => [uri, mimeType]),
    [[partURI, "application/json"]],
  );
  say("watched", partURI, true);
  await eventually("the reader runs", () => ran.length === 1);
  const r = reader();
  assert.deepEqual(r.said, [{ watch: true, name: "jobs", part }]);
  r.say("changed");
  const touches = () => calls().filter(([name]) => name === "touch");
  assert.equal(touches().length, 1, "a change of the whole is told of");
  r.say({ changed: "jobs" });
  assert.deepEqual(touches().at(-1).slice(0, 2), ["touch", partURI]);
  say("read", 5, partURI, partURI, "");
  await eventually("it is asked", () => r.said.length === 2);
  const ask = r.said[1];
  assert.deepEqual([ask.name, ask.part], ["jobs", part]);
  r.say({ call: ask.read, text: "[]" });
  await eventually("it is answered", () => frames.at(-1).startsWith("=5 "));
  assert.ok(frames.at(-1).includes('"mimeType":"application/json","text":"[]"'));
  say("read", 6, `${origin}/.pagewire/parts/constructor`, "", "");
  await eventually("what is no part is not read", () => calls().some(([name, id]) => name === "complete" && id === 6));

  // Everything is granted too, and then the part has another rule and another name.
  shows.allow([origin], picked({ jobs: part }));
  assert.deepEqual(registered().at(-1).uri, uri);
  const other = { ...part, as: "text" };
  const before = calls().length;
  shows.allow([origin], picked({ jobs: other }));
  assert.deepEqual(
    calls()
      .slice(before)
      .map(([name]) => name),
    ["unregister", "register"],
  );
  assert.deepEqual(r.said.at(-1), { watch: false, name: "jobs", part });
  shows.allow([origin], picked({}));
  assert.deepEqual(calls().at(-1), ["unregister", partURI]);

  // All else is withdrawn while it is being read; the part stays. A page that has no part is not
  // there at all.
  shows.allow([origin], picked({ jobs: part }));
  say("watched", uri, true);
  say("read", 7, uri, uri, "");
  await eventually("it is asked", () => "read" in r.said.at(-1));
  shows.allow([], picked({ jobs: part }));
  assert.deepEqual(r.said.at(-1), { watch: false });
  r.say({ call: r.said.at(-2).read, text: "withdrawn" });
  await eventually("it is not given", () => calls().some(([name, id]) => name === "complete" && id === 7));
  assert.ok(!frames.some((frame) => frame.includes("withdrawn")));
  tab.url = `${origin}/settings`;
  chrome.tabs.onUpdated.tell(7, { status: "loading" });
  await eventually("the tab is not shown any more", () => shows.list().length === 0);
  assert.equal(r.ended, true);
  shows.allow([]);
});

test("a part is read and told of only while the document has its address", async (t) => {
  t.after(() => delete globalThis.location);
  const go = (path) => (globalThis.location = { href: `${origin}${path}` });
  let during = () => {};
  let reads = 0;
  let change;
  const page = {
    view: (changed) => {
      change = changed;
      const read = async () => {
        reads++;
        await turn();
        during();
        return "text";
      };
      return { read, watch() {} };
    },
  };
  let told = 0;
  const view = viewOn(page, () => told++, { ...part, path: "/runs/*" });
  for (const path of ["/account", "/runs", "/runs/1/logs", "/runs/1/", "/", "/account?/runs/1", "/account#/runs/1"]) {
    go(path);
    assert.equal(await view.read(), undefined, path);
    change();
  }
  assert.deepEqual([reads, told], [0, 0]);
  go("/runs/1?tab=2#x");
  assert.equal(await view.read(), "text");
  change();
  assert.equal(told, 1);
  during = () => go("/account"); // by history.pushState, while it is being read
  assert.equal(await view.read(), undefined);
  const whole = viewOn(page, () => told++);
  change();
  assert.deepEqual([await whole.read(), told], ["text", 2]);
});

test("many parts may change at once and go on, and one may not tell for many", async (t) => {
  let now = 0;
  const clock = mock.method(performance, "now", () => now);
  t.after(() => clock.mock.restore());
  const { ran } = browse();
  const parts = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`part${i}`, part]));
  shows.allow([], picked(parts));
  await eventually("the tab is there", () => shows.list().length === 1);
  let frames = 0;
  let closed;
  const link = shows.list()[0].link(String, { frame: () => frames++, closed: (why) => (closed = why) });
  await eventually("it has introduced itself", () => frames === 2);
  const watch = (on, of) =>
    link.send(JSON.stringify(of.map((name) => ["watched", `${origin}/.pagewire/parts/${name}`, on])));
  watch(true, Object.keys(parts));
  await eventually("the reader runs", () => ran.length === 1);
  const r = reader();
  const minute = () => {
    for (let i = 0; i < 120 && !closed; i++) {
      for (const changed of Object.keys(parts)) r.say({ changed });
      now += 500;
    }
  };
  minute();
  assert.equal(closed, undefined);
  watch(false, Object.keys(parts).slice(1));
  minute();
  assert.equal(closed, refused.at(-1));
  shows.allow([]);
});

for (const [what, whole, parts] of [
  ["everything that a site shows", [origin], { jobs: part }],
  ["another part of a site", [], { jobs: part, rows: { ...part, path: "/other" } }],
])
  test(`${what} is for agents at once in the tab in front, also if the site has a part elsewhere`, async () => {
    const { tab, tabs } = browse(`${origin}/other`);
    let queries = 0;
    const query = chrome.tabs.query;
    chrome.tabs.query = async () => {
      queries++;
      return query();
    };
    const have = (parts) => ({
      origins: () => [origin],
      at: (_, url) =>
        Object.fromEntries(Object.entries(parts).filter(([, { path }]) => url.split("?")[0] === origin + path)),
    });
    shows.allow([], have({ jobs: part }));
    await eventually("the tabs are looked at", () => queries === 1);
    for (let i = 0; i < 20; i++) await turn();
    assert.equal(shows.list().length, 0);
    shows.allow(whole, have(parts));
    await eventually("the tab is there", () => shows.list().length === 1);
    assert.deepEqual([queries, tabs.get(7)], [2, tab]);
    shows.allow([]);
  });

test("parts are kept by the origin and the name, and their rules are bounded", async () => {
  const kept = {};
  chrome.storage.local = {
    get: async () => structuredClone(kept),
    set: async (all) => void Object.assign(kept, all),
  };
  const parts = await Picked.load();
  assert.equal(await parts.add(origin, "jobs", part), true);
  for (const name of ["jobs", "", "a/b", "__proto__", "a".repeat(65), "ä"])
    assert.equal(await parts.add(origin, name, part), false, name);
  await parts.add(origin, "constructor", { ...part, path: "/runs/*/x" });
  assert.deepEqual(Object.keys((await Picked.load()).at(origin, `${origin}/run?tab=2#x`)), ["jobs"]);
  assert.deepEqual(Object.keys(parts.at(origin, `${origin}/runs/4821/x`)), ["constructor"]);
  for (const path of ["/runs/1/2/x", "/runs/x", "/", "/run/"])
    assert.deepEqual(parts.at(origin, origin + path), {}, path);
  await parts.rename(origin, "jobs", "constructor");
  await parts.rename(origin, "jobs", "tests");
  assert.deepEqual(parts.list(), [
    { origin, name: "constructor" },
    { origin, name: "tests" },
  ]);
  for (const { name } of parts.list()) await parts.forget(origin, name);
  assert.deepEqual([parts.list(), parts.origins(), kept.parts], [[], [], {}]);
});

test("only the tab in which the user points is heard, and its rule is checked", async () => {
  const styles = [];
  browse();
  Object.assign(chrome.scripting, {
    insertCSS: async ({ css }) => void styles.push(`+${css.split("{")[0]}`),
    removeCSS: async ({ css }) => void styles.push(`-${css.split("{")[0]}`),
  });
  const picking = new Picking(() => {});
  const picker = (sender = {}) => {
    const p = port("pagewire.pick", { id: "ours", tab: { id: 7 }, frameId: 0, origin, ...sender });
    runtime.onConnect.tell(p.end);
    return p;
  };
  assert.ok(picker().ended, "nobody has asked");
  assert.ok(picker({ tab: undefined, frameId: 0 }).ended);
  await picking.begin(7);
  for (const sender of [{ tab: { id: 8 } }, { frameId: 1 }, { id: "another" }, { origin: "null" }])
    assert.ok(picker(sender).ended);
  const p = picker();
  p.say({ place: "html > body" });
  p.say({ place: "p{color:red}" });
  p.say({ rule: part });
  const { name, ...pending } = picking.pending;
  assert.deepEqual(pending, { tab: 7, origin, part });
  assert.ok(!(await Picked.load()).of(origin, name), "a part has this name");
  assert.ok(p.ended);
  await eventually("the mark has gone", () => styles.length === 2);
  assert.deepEqual(styles, ["+html > body", "-html > body"]);
  for (const rule of [
    null,
    1,
    {},
    { ...part, find: [] },
    { ...part, as: "x" },
    { ...part, find: [{ js: "x" }] },
    { ...part, path: 1 },
    { ...part, find: [{ css: "x".repeat(2001) }] },
    { ...part, find: [1] },
  ]) {
    await picking.begin(7);
    picker().say({ rule });
    assert.equal(picking.pending, undefined, JSON.stringify(rule));
  }
  await picking.begin(7);
  picker().leave();
  assert.ok(picker().ended, "its document has gone");
});

test("a part is shared only after the user has seen the text of exactly this pick", async () => {
  browse();
  const picking = new Picking(() => {});
  const pick = async () => {
    await picking.begin(7);
    const p = port("pagewire.pick", { id: "ours", tab: { id: 7 }, frameId: 0, origin });
    runtime.onConnect.tell(p.end);
    p.say({ rule: part });
    const { tab, name } = picking.pending;
    return { tab, origin, name };
  };
  const [before, picked] = [await pick(), await pick()];
  const text = "lines\n";
  const asked = [];
  const share = (preview) => {
    const props = { state: { parts: [], picked, preview }, tab: 7, here: origin, act: (what) => asked.push(what) };
    const all = [Share({ ...props, leave() {} })];
    for (const one of all) if (one?.props) all.push(...[one.props.children].flat(9));
    globalThis.FormData = class {
      get = () => "jobs";
    };
    all.find((one) => one?.type === "form").props.onSubmit({ preventDefault() {} }); // by Enter
    return all.some((one) => one?.props?.["data-do"] === "share");
  };
  const { FormData } = globalThis;
  const seen = { tab: 7, origin, part: picked.name };
  for (const preview of [
    undefined,
    seen, // the page does not show it
    { ...seen, text, part: before.name },
    { ...seen, text, part: undefined },
    { ...seen, text, part: "jobs" },
    { ...seen, text, tab: 8 },
  ])
    assert.equal(share(preview), false, JSON.stringify(preview));
  assert.deepEqual(asked, []);
  assert.equal(share({ ...seen, text }), true);
  assert.deepEqual(asked, [{ do: "share", picked: picked.name, name: "jobs" }]);
  globalThis.FormData = FormData;
});

test("a gateway learns which of its tabs by CDP it is, in the extension's own world alone", async () => {
  const { calls } = await granted();
  const told = () => calls().find(([name, { target }]) => name === "note" && target)?.[1].target;
  const say = (target, sender) =>
    runtime.onMessage.tell({ target }, { id: "ours", tab: { id: 7 }, frameId: 0, ...sender });
  for (const sender of [{ id: "another" }, { frameId: 3 }, { tab: undefined }, { tab: { id: 8 } }])
    say("cdp:FORGED", sender);
  for (const target of [undefined, 7, "", "page https://a.test x", `cdp:${"X".repeat(99)}`, 'cdp:"']) say(target, {});
  runtime.onMessage.tell(null, { id: "ours", tab: { id: 7 }, frameId: 0 });
  assert.equal(targets.of(7), undefined);
  say("cdp:0123ABC", {});
  await eventually("it is told", () => told() === "cdp:0123ABC");
  const next = new Targets(() => assert.fail("it is known"));
  await next.ready;
  assert.deepEqual([next.of(7), next.of(8)], ["cdp:0123ABC", "cdp:FORGED"], "the next worker has forgotten it");
  shows.allow([]);
  await eventually("no tab is shown", () => !shows.list().length);
  shows.allow([origin]);
  await eventually("the tab is there", () => shows.list().length === 1);
  const frames = [];
  shows.list()[0].link(String, { frame: (text) => frames.push(text) });
  await eventually("it has introduced itself", () => frames.length === 2);
  assert.equal(JSON.parse(frames[0])[0][3].target, "cdp:0123ABC");
  shows.allow([]);
});
