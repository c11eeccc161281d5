// The part of the web platform's testharness.js that the files here use, with its names and meanings; no maintained
// package of the original exists. The files are written against the original, and run on it unchanged.
//
// It reports to nobody: `tests` is what wpt_test.go awaits, [{name, status, message}], once all have ended.
(() => {
  const running = [];
  const results = [];
  let queue = Promise.resolve();

  class AssertionError extends Error {}
  const show = (value) =>
    typeof value === "string"
      ? JSON.stringify(value)
      : typeof value === "symbol"
        ? String(value)
        : value instanceof Object
          ? Object.prototype.toString.call(value)
          : String(value);
  const assert = (holds, what, description = "") => {
    if (!holds) throw new AssertionError(`${what} ${description}`.trim());
  };

  const perform = async (body, name) => {
    const cleanups = [];
    const t = {
      name,
      add_cleanup: (f) => cleanups.push(f),
      step_timeout: (f, ms, ...args) => setTimeout(f, ms, ...args),
      unreached_func: (description) => () => {
        throw new AssertionError(`unreached: ${description}`);
      },
    };
    try {
      await body(t);
      results.push({ name, status: "PASS", message: "" });
    } catch (error) {
      results.push({ name, status: "FAIL", message: `${error?.name}: ${error?.message}` });
    }
    for (const f of cleanups) await f();
  };

  Object.assign(globalThis, {
    setup() {},
    done() {},
    test: (body, name = document.title) =>
      void running.push((queue = queue.then(() => perform((t) => void body(t), name)))),
    promise_test: (body, name = document.title) => void running.push((queue = queue.then(() => perform(body, name)))),

    assert_true: (actual, description) => assert(actual === true, `expected true, got ${show(actual)}.`, description),
    assert_false: (actual, description) =>
      assert(actual === false, `expected false, got ${show(actual)}.`, description),
    assert_equals: (actual, expected, description) =>
      assert(Object.is(actual, expected), `expected ${show(expected)}, got ${show(actual)}.`, description),
    assert_not_equals: (actual, expected, description) =>
      assert(!Object.is(actual, expected), `got ${show(actual)}.`, description),
    assert_array_equals(actual, expected, description) {
      assert(
        actual.length === expected.length && expected.every((e, i) => Object.is(e, actual[i])),
        `expected ${show(String(expected))}, got ${show(String(actual))}.`,
        description,
      );
    },
    assert_unreached: (description) => assert(false, "reached.", description),
    assert_throws_js(type, f, description) {
      try {
        f();
      } catch (error) {
        return assert(
          error.constructor === type && error.name === type.name,
          `threw ${error?.name}: ${error?.message}.`,
          description,
        );
      }
      assert(false, "did not throw.", description);
    },
    assert_throws_dom(name, f, description) {
      try {
        f();
      } catch (error) {
        return assert(
          error instanceof DOMException && error.name === name,
          `threw ${error?.name}: ${error?.message}.`,
          description,
        );
      }
      assert(false, "did not throw.", description);
    },
    assert_throws_exactly(exception, f, description) {
      try {
        f();
      } catch (error) {
        return assert(error === exception, `threw ${show(error)}.`, description);
      }
      assert(false, "did not throw.", description);
    },
  });

  /** What the tests came to: the files' own scripts have all run by the load event. */
  globalThis.tests = new Promise((done) =>
    addEventListener("load", async () => {
      for (let i = 0; i < running.length; i++) await running[i];
      done(results);
    }),
  );
})();
