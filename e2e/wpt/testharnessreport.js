// The runner of the tests supplies testharnessreport.js: wpt_test.go waits for wptResults, [{name, status, message}]. A
// busy machine may be slow.
setup({ timeout_multiplier: 10 });
globalThis.wptResults = new Promise((resolve) => {
  add_completion_callback((tests, harness) => {
    const names = ["PASS", "FAIL", "TIMEOUT", "NOTRUN", "PRECONDITION_FAILED"];
    const results = tests.map(({ name, status, message }) => ({ name, status: names[status], message }));
    if (harness.status !== 0) results.push({ name: "the harness", status: "ERROR", message: harness.message });
    resolve(results);
  });
});
