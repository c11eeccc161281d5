/** When the reconnect loop tries again. */
import assert from "node:assert/strict";
import { mock, test } from "node:test";

mock.timers.enable({ apis: ["setTimeout", "Date"] }); // before the loop takes them
const { reconnect } = await import("../../../dist/test/page.mjs");

function begin() {
  const c = { attempts: 0, failures: 0 };
  c.loop = reconnect(
    () => c.attempts++,
    (failures) => {
      c.failures = failures;
      return 1_000;
    },
  );
  /** An attempt fails: the next one is made within a quarter of `pause`. */
  c.fails = (pause, within) => {
    const before = c.attempts;
    c.loop.again(undefined, within);
    mock.timers.tick(pause * 0.7);
    assert.equal(c.attempts, pause ? before : before + 1);
    mock.timers.tick(pause * 0.6);
    assert.equal(c.attempts, before + 1);
  };
  return c;
}

test("at once first, then more and more rarely", () => {
  const c = begin();
  for (const pause of [0, 25, 50, 100, 200, 400, 800, 1_000, 1_000]) c.fails(pause);
  assert.equal(c.failures, 9);
  assert.equal(c.loop.again(50_000), 10);
  mock.timers.tick(49_999);
  assert.equal(c.attempts, 9);
  mock.timers.tick(1);
  assert.equal(c.attempts, 10);
});

test("many clients have longer pauses", () => {
  const c = begin();
  c.loop.again(undefined, 2_000);
  mock.timers.tick(2_000);
  for (const pause of [100, 200, 400]) c.fails(pause, 2_000);
  assert.equal(c.attempts, 4);
});

test("a connection that did not last is a failure", () => {
  const c = begin();
  for (const pause of [0, 25, 50]) {
    c.loop.opened();
    mock.timers.tick(1_000);
    c.fails(pause);
  }
  c.loop.opened();
  mock.timers.tick(3_000);
  c.fails(0);
});

test("an attempt that was stopped is not made", () => {
  const c = begin();
  c.loop.again();
  c.loop.again();
  c.loop.stop();
  mock.timers.tick(10_000);
  assert.equal(c.attempts, 1);
});
