// The transport of pagewire.connect(), with a port in place of the core's.
import assert from "node:assert/strict";
import { test } from "node:test";

globalThis.window = globalThis;
globalThis.document = new EventTarget();
const { connect } = await import("../../../dist/test/page.mjs");

/** A session whose port opens with `opened`, or fails, and what it did. */
function begin(opened = Promise.resolve()) {
  const log = [];
  const transport = {
    onclose: () => log.push("onclose"),
    onerror: ({ message }) => log.push("onerror " + message),
  };
  const session = connect(transport, async () => {
    await opened;
    return { receive: (text) => log.push(text), close: (reason) => log.push(reason) };
  });
  return { log, session };
}

test("what was sent before close() arrives, and what comes after it is refused", async () => {
  let open;
  for (const opened of [undefined, new Promise((done) => (open = done))]) {
    const { log, session } = begin(opened);
    const sent = session.send("the last");
    const closed = session.close();
    const late = assert.rejects(session.send("late"), /closed by the client/);
    open?.();
    await Promise.all([sent, closed, late]);
    assert.deepEqual(log, ["onclose", "the last", "closed by the client"]);
  }
});

test("a port that does not open ends its session, once", async () => {
  const { log, session } = begin(Promise.reject(new Error("no core")));
  await assert.rejects(session.send("x"), /no core/);
  await session.close();
  assert.deepEqual(log, ["onerror no core", "onclose"]);
});
