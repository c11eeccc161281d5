// The configuration of Next.js. e2e/frameworks_test.go develops an app with it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { withPagewire } from "../../../dist/next.js";

const config = { basePath: "/app" };

for (const [kind, given] of [
  ["an object", config],
  ["a function", async () => config],
  ["a promise", Promise.resolve(config)],
])
  test(`a configuration that is ${kind} is kept, and has pagewire/dev in development alone`, async () => {
    assert.deepEqual(await withPagewire(given)("phase-production-build", {}), config);
    const { basePath, instrumentationClientInject } = await withPagewire(given)("phase-development-server", {});
    assert.deepEqual([basePath, instrumentationClientInject], ["/app", ["pagewire/dev"]]);
  });

test("a plugin around withPagewire() finds the members of the configuration", () => {
  assert.equal(withPagewire(config).basePath, "/app"); // as in { ...withPagewire(config), pageExtensions }
});
