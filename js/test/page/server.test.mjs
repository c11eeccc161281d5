// The module on a server that renders: importing it must do no harm.
import assert from "node:assert/strict";
import { test } from "node:test";
import pagewire, { pagewire as named } from "../../../dist/pagewire.mjs";

test("there is a pagewire that says what it lacks", () => {
  assert.equal(pagewire, named);
  assert.equal(globalThis.pagewire, undefined);
  assert.throws(() => pagewire.connect(), {
    message: "pagewire: there is no page here (a server, a worker or a test): call connect() only in a browser's page",
  });
  assert.equal(pagewire.stats().core, "none");
  pagewire.configure({ load: "eager" });
  pagewire.uninstall();
  assert.equal(globalThis.ModelContext, undefined);
});
