/**
 * The page's end of the link as frames, against the vectors that package link's tests read, too.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { mock, test } from "node:test";

mock.timers.enable({ apis: ["setTimeout"] }); // before the channel takes it
/**
 * How far the page's clocks have gone: that which never jumps, and that which stands for the time
 * of day. They do not go by themselves.
 */
let passed = [0, 0];
// Whole, so that sums are exact.
const clocks = [Math.ceil(performance.now()), Date.now()];
performance.now = () => clocks[0] + passed[0];
Date.now = () => clocks[1] + passed[1];
const pass = (ms) => (passed = passed.map((before) => before + ms));
const tick = (ms) => {
  pass(ms);
  mock.timers.tick(ms);
};
const { channel, later } = await import("../../../dist/test/page.mjs");

const turn = () => new Promise((done) => setImmediate(done));

/** A channel, with the frames that it has posted and the calls of its core to the page. */
function begin(slow) {
  const c = { frames: [], asked: [], dead: undefined, given: undefined };
  const page = { dead: (reason) => (c.dead = reason) };
  for (const name of ["read", "end", "watched", "report"]) page[name] = (...args) => c.asked.push([name, ...args]);
  page.callTool = (id, name, args, unless, sent) => {
    c.asked.push(["callTool", id, name, args, unless]);
    c.core?.starting(id, sent);
  };
  page.start = (id) => c.log.push("start " + id);
  c.log = [];
  const post = (frame) => c.frames.push(frame) && c.log.push(frame);
  const core = channel(page, post, { epoch: "e", tab: "abcdefgh" }, (about) => (c.given = about.tab), {
    slow,
    frozen: () => slow,
  });
  return Object.assign(c, { core });
}

/** A channel that has received a hello, with no frames that wait. */
async function greeted(about = {}, slow = false) {
  const c = begin(slow);
  c.core.receive([["hello", 1, "0", about]]);
  await turn();
  c.frames.length = c.log.length = 0;
  return c;
}

const vectors = readFileSync(new URL("../../../bridge/link/testdata/core.txt", import.meta.url), "utf8");
for (const line of vectors.trimEnd().split("\n")) {
  const [name, outcome, frame] = line.split("\t");
  test(`the core says ${name}`, () => {
    const c = begin();
    c.core.receive(JSON.parse(frame));
    assert.equal(c.dead ?? "ok", outcome);
  });
}

test("the hello goes first, at once, and the tab that comes back is taken", () => {
  const c = begin();
  assert.match(c.frames[0], /^\[\["hello",1,"[^"]+",\{"epoch":"e","tab":"abcdefgh","starts":true\}\]\]$/);
  c.core.receive([["hello", 1, "0", { tab: "given000" }]]);
  assert.equal(c.given, "given000");
});

test("what is said in a turn goes in one frame at its end", async () => {
  const c = await greeted();
  c.core.register("{}");
  c.core.unregister("u");
  c.core.setTools("[]");
  c.core.note({ title: "t" });
  assert.deepEqual(c.frames, []);
  await turn();
  assert.deepEqual(c.frames, ['[["register","{}"],["unregister","u"],["setTools","[]"],["note",{"title":"t"}]]']);
});

test("contents go at once, behind earlier calls, and are not quoted again", async () => {
  const c = await greeted();
  c.core.touch("u", 4);
  c.core.complete(7, 0, 4, 20, '[{"uri":"u","text":"\\"é"}]');
  assert.deepEqual(c.frames, ['[["touch","u",4]]', '=7 4 [{"uri":"u","text":"\\"é"}]']);
  c.core.complete(8, 1, 5, 0, "no");
  await turn();
  assert.deepEqual(c.frames.slice(2), ['[["complete",8,1,5,"no"]]']);
});

test("touches wait for the core's answer: then there is one of each URI", async () => {
  const c = await greeted();
  c.core.touch("u", 1);
  await turn();
  assert.deepEqual(c.frames, ['[["touch","u",1]]']);
  for (let i = 2; i < 1000; i++) c.core.touch("u", i);
  c.core.touch("v", 1000);
  await turn();
  assert.equal(c.frames.length, 1);
  c.core.receive([]);
  await turn();
  assert.deepEqual(c.frames.slice(1), ['[["touch","u",999],["touch","v",1000]]']);
});

test("a core that is silent for 10 s is dead, and one that answers is not", async () => {
  const silent = await greeted();
  const fading = await greeted();
  const lively = await greeted();
  for (const c of [silent, fading, lively]) c.core.touch("u", 1);
  await turn();
  tick(9_900);
  assert.equal(silent.dead, undefined);
  silent.core.note({ title: "t" });
  for (const c of [fading, lively]) {
    c.core.receive([]);
    c.core.touch("u", 2);
  }
  await turn();
  tick(100);
  assert.equal(silent.dead, "it does not answer");
  tick(9_700);
  assert.equal(fading.dead, undefined, "its last frame has waited for less than 10 s");
  lively.core.receive([]);
  tick(200);
  assert.equal(fading.dead, "it does not answer");
  tick(60_000);
  assert.equal(lively.dead, undefined);
  const said = silent.frames.length;
  silent.core.touch("u", 2);
  silent.core.receive([["read", 1, "k", "u", ""]]);
  await turn();
  assert.equal(silent.frames.length, said, "it says nothing more");
  assert.deepEqual(silent.asked, [], "and obeys no more");
});

test("a core that is silent is dead also if the page's clock began at its first frame", () => {
  const before = passed;
  passed = [-clocks[0], 0];
  const c = begin();
  tick(10_001);
  passed = before;
  assert.equal(c.dead, "it does not answer");
});

test("the transport's end, a bye and stop each end it once", async () => {
  const ended = await greeted();
  ended.core.receive(null);
  assert.equal(ended.dead, "the connection has ended");
  const left = await greeted();
  left.core.leave(true);
  assert.deepEqual(left.frames, ['[["bye",true]]']);
  const stopped = await greeted();
  stopped.core.unregister("u");
  stopped.core.stop();
  assert.deepEqual(stopped.frames, ['[["unregister","u"]]']);
  for (const c of [left, stopped]) {
    c.core.receive(null);
    c.core.register("{}");
    await turn();
    assert.equal(c.frames.length, 1);
    assert.equal(c.dead, undefined);
  }
});

/** A core's clock, which is far from the page's, and a call that it sends. */
const theirs = () => Math.floor(performance.now()) + 7_000_000;
const tool = (sent, id = 7) => ["callTool", id, "pay", "{}", "", sent];
/** What the page says and starts when the core says `calls`. */
async function hears(c, ...calls) {
  c.log.length = 0;
  c.core.receive(calls);
  for (let i = 0; i < 3; i++) await new Promise(later); // more tasks than a start takes
  await turn();
  return c.log;
}

test("a call that comes in time starts at once, and the core is told before", async () => {
  for (const slow of [false, true]) {
    const c = await greeted({ now: theirs() }, slow);
    for (const late of [0, 100, 100]) {
      const sent = theirs();
      pass(late);
      await hears(c, tool(sent));
      assert.deepEqual(c.log.toSorted(), ['[["started",7]]', "start 7"]);
      if (slow) assert.equal(c.log[1], "start 7");
    }
  }
});

test("a call that comes late asks first, and starts only if the core still wants it", async () => {
  const c = await greeted({ now: theirs() });
  for (const late of [
    () => pass(300),
    () => (passed[0] += 300),
    () => (passed[1] += 36e5),
    () => (passed[0] -= 1000),
  ]) {
    const sent = theirs();
    late();
    assert.deepEqual(await hears(c, tool(sent)), ['[["starting",7]]']);
    assert.deepEqual(await hears(c, ["start", 7, theirs()]), ["start 7", '[["started",7]]']);
    assert.deepEqual(await hears(c, ["start", 7, theirs()]), [], "once");
    assert.deepEqual(await hears(c, tool(theirs(), 8)), ["start 8", '[["started",8]]'], "the next pays nothing");
  }
  assert.deepEqual(await hears(c, tool(0)), ['[["starting",7]]'], "the core may want the question");
  assert.deepEqual(await hears(c, ["end", 7], ["start", 7, theirs()]), []);
});

test("an answer that comes late is no answer, and a slow network gets through", async () => {
  const c = await greeted({ now: theirs() });
  assert.deepEqual(await hears(c, tool(0)), ['[["starting",7]]']);
  for (const late of [300, 600, 1200]) {
    const at = theirs();
    pass(late);
    assert.deepEqual(await hears(c, ["start", 7, at]), ['[["starting",7]]'], `${late}`);
  }
  const at = theirs();
  pass(1200);
  assert.deepEqual(await hears(c, ["start", 7, at]), ["start 7", '[["started",7]]']);
});

test("a late call of a link that has ended starts no more, and one of an older core starts as ever", async () => {
  const ended = await greeted({ now: theirs() });
  const sent = theirs();
  pass(400);
  await hears(ended, tool(sent));
  assert.deepEqual(await hears(ended, ...[]), []);
  ended.core.receive(null);
  assert.deepEqual(await hears(ended, ["start", 7, theirs()]), []);
  const older = await greeted();
  assert.deepEqual(await hears(older, tool(undefined)), ["start 7"]);
});
