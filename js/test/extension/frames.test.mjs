// The service worker and frames: it stamps the first, passes on the others, and bounds them all.
import assert from "node:assert/strict";
import { test } from "node:test";
import { call, eventually, port, runtime, turn } from "./browser.mjs";
import { keep, Live, nativeMessaging } from "../../../dist/test/extension.mjs";

const hello = (about) => JSON.stringify([["hello", 1, "0", about]]);
const allowed = new Set(["https://a.test"]);
let admits = (origin) => allowed.has(origin);
const documents = keep({ admits: (origin) => admits(origin), profile: () => "Work" }, Live);
const last = () => documents.list().at(-1);

/** A document that has been admitted, and a link with it. */
async function linked(t) {
  const tab = Math.floor(Math.random() * 1e9);
  const page = call("https://a.test", tab, { tab: { id: tab, windowId: 8 } });
  t.after(() => page.leave());
  const document = last();
  await eventually("it is admitted", () => document.admitted);
  const heard = [];
  let closed;
  const link = document.link((id) => `name-of-${id}`, {
    frame: (text) => heard.push(text),
    closed: (why) => (closed = why),
  });
  return { page, document, link, heard, closed: () => closed };
}

/** A document that is offered to a native host. */
async function native(t) {
  const host = port("host");
  runtime.connectNative = () => host.end;
  const { page, document } = await linked(t);
  const nothing = () => {};
  const transport = nativeMessaging((tab) => `tab-${tab}-0000`, nothing, assert.fail, nothing);
  t.after(() => transport.close());
  transport.serve([document]);
  return { page, document, host };
}

test("the first frame has the browser's facts, and none of the page's", async (t) => {
  const { page, heard, document } = await linked(t);
  page.say({ offers: 1, frame: "0.1", url: "https://a.test/x", title: "A", focused: 5 });
  page.confirm();
  page.say(
    hello({ epoch: "e", origin: "https://b.test", tab: "another1", frame: "", url: "https://b.test/", profile: "B" }),
  );
  page.say('[["touch","https://a.test/x",1]]');
  page.say('=1 2 [{"text":"[["}]');
  const about = {
    epoch: "e",
    tab: `name-of-${document.tab}`,
    frame: "0.1",
    title: "A",
    url: "https://a.test/x",
    origin: "https://a.test",
    focused: 5,
    browser: navigator.userAgent,
    profile: "Work",
    window: "name-of-8",
  };
  assert.deepEqual(JSON.parse(heard[0]), [["hello", 1, "0", about]]);
  assert.deepEqual(heard.slice(1), ['[["touch","https://a.test/x",1]]', '=1 2 [{"text":"[["}]']);
  page.say({ url: "https://b.test/", frame: "x", title: "C" });
  assert.deepEqual(JSON.parse(heard[3]), [["note", { title: "C", focused: 5 }]]);
  page.say({ focused: 0 });
  page.say({ focused: 3 }); // its clock was set back meanwhile
  assert.deepEqual(JSON.parse(heard[4]), [["note", { title: "C", focused: 3 }]]);
});

test("names of what a page offers are a text, and bounded", async (t) => {
  const { page, document } = await linked(t);
  page.say({ offers: 2, names: "Cart\nOrders\n" });
  assert.equal(document.names, "Cart\nOrders\n");
  for (const names of [["Cart"], {}, 1]) page.say({ names });
  assert.equal(document.names, "Cart\nOrders\n");
  page.say({ names: "x".repeat(100_000) });
  assert.ok(document.names.length <= 1024);
});

test("what a page says before its link, or of one that is over, is not passed on", async (t) => {
  const { page, heard, link, document } = await linked(t);
  page.say(hello({ epoch: "e" })); // of an earlier link: the page has not confirmed the start
  assert.deepEqual(heard, []);
  page.confirm();
  page.say(hello({ epoch: "e" }));
  assert.equal(heard.length, 1);
  link.close();
  page.say("[]");
  const again = [];
  document.link((id) => `name-of-${id}`, { frame: (text) => again.push(text), closed() {} });
  page.say("[]");
  page.confirm();
  page.say(hello({ epoch: "e" }));
  assert.equal(heard.length, 1);
  assert.equal(again.length, 1);
  assert.deepEqual(
    page.said.filter((m) => typeof m !== "object" || m === null).map((m) => m?.split(" ")[0] ?? m),
    ["start", null, "start"],
  );
});

test("a document that is not admitted has no link, and one that no longer is loses its link", async (t) => {
  const stranger = call("https://b.test");
  t.after(() => stranger.leave());
  await eventually("it is told to wait", () => stranger.said.includes("wait"));
  assert.throws(() => last().link("tab-0001", {}), /may not be read/);
  const { page, heard, closed } = await linked(t);
  page.confirm();
  page.say(hello({ epoch: "e" }));
  allowed.delete("https://a.test");
  t.after(() => allowed.add("https://a.test"));
  await documents.look();
  assert.match(closed(), /withdrawn/);
  assert.equal(page.said.at(-1), "wait");
  page.say("[]");
  assert.equal(heard.length, 1);
});

test("an answer that comes after that of a later check does not count", async (t) => {
  const { document, closed } = await linked(t);
  const answers = [];
  const before = admits;
  t.after(() => (admits = before));
  admits = () => new Promise((done) => answers.push(done));
  const looks = [documents.look(), documents.look()];
  answers[1](false);
  await turn();
  assert.match(closed(), /withdrawn/);
  answers[0](true);
  await Promise.all(looks);
  assert.equal(document.admitted, false);
});

for (const [name, frames] of [
  ["no JSON", ["[["]],
  ["no hello", ["[]"]],
  ["contents", ["=1 1 []"]],
  ["a hello beside others", ['[["hello",1,"0",{"epoch":"e"}],["bye",true]]']],
  ["a hello without an epoch", [hello({})]],
  ["a hello about nothing", ['[["hello",1,"0"]]']],
  ["a long hello", [hello({ epoch: "e" }) + " ".repeat(64 << 10)]],
  ["a start too many", [(page) => page.started()]],
  ["a long frame", [hello({ epoch: "e" }), "x".repeat((17 << 20) + 1)]],
  ["a number", [7]],
  ["a flood", [hello({ epoch: "e" }), ...Array(40_000).fill("[]")]],
])
  test(`${name} is refused, and ends the document`, async (t) => {
    const { page, heard, closed } = await linked(t);
    const refused = () => [...documents.refused.values()].reduce((a, b) => a + b, 0);
    const before = refused();
    const now = performance.now();
    t.mock.method(performance, "now", () => now); // the number of allowed messages grows with the time
    page.confirm();
    for (const frame of frames) page.say(typeof frame === "function" ? frame(page) : frame);
    assert.ok(page.ended);
    assert.equal(closed(), "the page has gone");
    assert.equal(refused(), before + 1);
    assert.ok(heard.length <= 11_000, `${heard.length} frames were passed on`);
  });

test("by native messaging a frame goes in pieces, and no more than the gateway takes", async (t) => {
  const { page, document, host } = await native(t);
  assert.deepEqual(host.said, [{ type: "open", id: document.id, origin: "https://a.test" }]);
  host.say({ type: "open", id: document.id, session: 3 });
  page.confirm();
  page.say(hello({ epoch: "e" }));
  const long = `=1 1 ["x${"𝄞é".repeat(2 << 20)}"]`;
  page.say(long);
  page.say("[]");
  const frames = () => host.said.filter(({ type }) => type === "frame").slice(1);
  const sent = () => frames().reduce((n, { text }) => n + text.length, 0);
  assert.ok(sent() > 1 << 20 && sent() < 3 << 20, `${sent()} were sent though nothing was taken`);
  for (let ack = 0; sent() < long.length + 2; ) {
    const asked = host.said.findLast(({ ack }) => ack).ack;
    assert.ok(asked > ack, "nothing more is sent");
    host.say({ type: "taken", id: document.id, session: 3, ack: (ack = asked) });
  }
  const texts = [""];
  for (const { text, more, session } of frames()) {
    assert.equal(session, 3);
    assert.ok(text.isWellFormed(), "a character is cut");
    texts[texts.length - 1] += text;
    if (!more) texts.push("");
  }
  assert.deepEqual(texts.slice(1), ["[]", ""]);
  assert.ok(texts[0] === long, "what arrives is something else");
  // In the other direction: the browser takes at most 1 MB of a native host in one message.
  const from = { type: "frame", id: document.id, session: 3 };
  for (const piece of [{ text: '[["read"', more: true }, { text: ",1", more: true }, { text: "]]" }])
    host.say({ ...from, ...piece });
  assert.equal(page.said.at(-1), '[["read",1]]');
});

test("a document that is withdrawn says farewell, and one that is refused comes again", async (t) => {
  const { page, document, host } = await native(t);
  host.say({ type: "open", id: document.id, session: 1 });
  page.confirm();
  page.say(hello({ epoch: "e" }));
  host.say({ type: "refused", id: document.id, reason: "too much" });
  await eventually("it is opened again", () => host.said.filter(({ type }) => type === "open").length === 2);
  host.say({ type: "open", id: document.id, session: 2 });
  page.confirm();
  page.say(hello({ epoch: "e" }));
  allowed.delete("https://a.test");
  t.after(() => allowed.add("https://a.test"));
  await documents.look();
  await turn();
  assert.deepEqual(host.said.slice(-2), [
    { type: "frame", id: document.id, session: 2, text: '[["bye",true]]' },
    { type: "close", id: document.id },
  ]);
});
