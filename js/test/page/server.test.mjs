// The module on a server that renders: importing it must do no harm.
import assert from "node:assert/strict";
import { test } from "node:test";
import pagewire, { pagewire as named } from "../../../dist/pagewire.mjs";

test("there is a pagewire that says what it lacks", () => {
  assert.equal(pagewire, named);
  assert.equal(pagewire, globalThis.pagewire);
  assert.throws(() => pagewire.connect(), {
    message: "pagewire: a page needs a secure context (https, or http on loopback)",
  });
  assert.equal(pagewire.stats().core, "none");
  pagewire.configure({ load: "eager" });
  pagewire.uninstall();
  assert.equal(globalThis.ModelContext, undefined);
});
