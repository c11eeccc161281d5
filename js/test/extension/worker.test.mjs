// The core that pagewire/extension/worker gives to other extensions, at the other end of a
// document's link.
import assert from "node:assert/strict";
import { test } from "node:test";
import { call, eventually } from "./browser.mjs";
import { serve } from "../core/harness.mjs";
import { documents } from "../../../dist/test/extension.mjs";

const origin = "https://a.test";
const kept = documents({ wasm: `${await serve()}/pagewire.wasm`, admits: () => true });

/** A document whose page offers a resource, and a session with it. */
async function session(t) {
  const page = call(origin, Math.floor(Math.random() * 1e9));
  t.after(() => page.leave());
  const document = kept.list().at(-1);
  await eventually("it is admitted", () => document.admitted);
  const heard = [];
  let closed;
  const opening = document.open({ deliver: (text) => heard.push(JSON.parse(text)), closed: (why) => (closed = why) });
  await eventually("the page is told to start", () => page.started());
  page.confirm();
  page.say('[["hello",1,"0",{"epoch":"e"}]]');
  page.say(`[["register","{\\"uri\\":\\"${origin}/x\\",\\"name\\":\\"x\\"}"]]`);
  const s = await opening;
  let id = 0;
  const ask = async (method, params) => {
    const mine = ++id;
    s.receive(JSON.stringify({ jsonrpc: "2.0", id: mine, method, params }));
    await eventually(`${method} is answered`, () => heard.some((m) => m.id === mine));
    return heard.find((m) => m.id === mine);
  };
  const clientInfo = { name: "t", version: "1" };
  await ask("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo });
  s.receive('{"jsonrpc":"2.0","method":"notifications/initialized"}');
  /** The calls with a name that were sent to the page. */
  const asked = (name) =>
    page.said
      .filter((frame) => typeof frame === "string" && frame[0] === "[")
      .flatMap((frame) => JSON.parse(frame))
      .filter(([called]) => called === name);
  const read = async (text) => {
    const reading = ask("resources/read", { uri: `${origin}/x` });
    await eventually("the page is asked", () => asked("read").length === 1);
    page.say(`=${asked("read")[0][1]} 3 [{"uri":"${origin}/x","text":"${text}"}]`);
    return await reading;
  };
  return { page, document, heard, ask, asked, read, closed: () => closed, close: () => s.close() };
}

test("a session lists, reads and is told", async (t) => {
  const { page, document, heard, ask, asked, read, close } = await session(t);
  assert.deepEqual(asked("hello")[0].slice(0, 2), ["hello", 1]);
  const { result } = await ask("resources/list", {});
  assert.deepEqual(
    result.resources.map(({ uri }) => uri),
    [`${origin}/x`],
  );
  assert.equal((await read("é")).result.contents[0].text, "é");
  await eventually("the call is ended", () => asked("end").length === 1);
  await ask("resources/subscribe", { uri: `${origin}/x` });
  await eventually("it is watched", () => asked("watched").length === 1);
  page.say(`[["touch","${origin}/x",3]]`); // the revision that was read
  await ask("ping");
  const updates = () => heard.filter(({ method }) => method === "notifications/resources/updated").length;
  assert.equal(updates(), 0);
  page.say(`[["touch","${origin}/x",4]]`);
  await eventually("the session is told", () => updates() === 1);
  assert.equal(document.sessions, 1);
  close();
  assert.equal(document.sessions, 0);
});

test("what changed between the read and the subscription is told", async (t) => {
  const { page, heard, ask, asked, read } = await session(t);
  await read("x");
  await ask("resources/subscribe", { uri: `${origin}/x` });
  await eventually("it is watched", () => asked("watched").length === 1);
  page.say(`[["touch","${origin}/x",4]]`);
  await eventually("it is told", () => heard.some(({ method }) => method === "notifications/resources/updated"));
});

const broken = `x|[[|{}|[1]|=x|=1 1|[["stop"]]|[["constructor"]]|[["register"]]|[["touch","x"]]|[["open",1]]`;
for (const frame of [...broken.split("|"), '[["complete",1,0,0,""]]', '[["hello",2,"0",{}]]'])
  test(`${frame} ends the document and its sessions`, async (t) => {
    const { page, document, closed } = await session(t);
    page.say(frame);
    assert.ok(page.ended);
    assert.equal(closed(), "the page has gone");
    assert.equal(document.sessions, 0);
    await assert.rejects(document.open({}), /has gone/);
  });

test("answers to no call change nothing", async (t) => {
  const { page, ask } = await session(t);
  page.say("=99 1 []");
  page.say('[["complete",99,1,0,"x"],["note",{"title":"x"}],["progress",99,"{}"]]');
  assert.equal((await ask("resources/list", {})).result.resources.length, 1);
  assert.ok(!page.ended);
});
