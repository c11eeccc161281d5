// The generated files agree with the IDL, and the generator refuses constructs without a rule.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { check, copyOf, root } from "../js/test/idl.mjs";

/** The generator's result after a change of the IDL. */
function checkWith(t, change) {
  const copy = copyOf(t, ["js/pagewire.d.ts", "js/page/early/idl.gen.ts"]);
  const idl = join(copy, "idl/model-context-resources.idl");
  const before = readFileSync(idl, "utf8");
  const after = change(before);
  assert.notEqual(after, before, "the change changes something");
  writeFileSync(idl, after);
  return check("generate.mjs", copy);
}

test("the generated files are up to date", () => {
  const { status, stderr } = check("generate.mjs");
  assert.equal(status, 0, stderr);
});

test("a changed member is drift in both files, named", (t) => {
  const { status, stderr } = checkWith(t, (idl) => idl.replace("required DOMString name", "required DOMString label"));
  assert.equal(status, 1);
  assert.match(stderr, /js\/page\/early\/idl\.gen\.ts differs/);
  assert.match(stderr, /js\/pagewire\.d\.ts differs/);
});

test("a changed comment is drift in the types only", (t) => {
  const { status, stderr } = checkWith(t, (idl) => idl.replace("A name for people.", "A name."));
  assert.equal(status, 1);
  assert.doesNotMatch(stderr, /idl\.gen\.ts/);
  assert.match(stderr, /js\/pagewire\.d\.ts differs/);
});

// The IDL that is offered to web-platform-tests is a part of Pagewire's, so the two cannot
// contradict each other.
test("the IDL that is offered upstream is a part of this one", async () => {
  const { parse } = await import("../js/node_modules/webidl2/index.js");
  const read = (file) => parse(readFileSync(join(root, "idl", file), "utf8"));
  const ours = new Map(read("model-context-resources.idl").map((node) => [node.name, node]));
  const text = (node) => JSON.stringify(node);
  for (const node of read("upstream/wpt/interfaces/webmcp-page-resources.tentative.idl")) {
    const own = ours.get(node.name);
    assert.ok(own, `${node.name} is in Pagewire's IDL`);
    if (node.type === "callback") {
      assert.deepEqual(text([node.idlType, node.arguments]), text([own.idlType, own.arguments]));
      continue;
    }
    for (const member of node.members) {
      const twin = own.members.find(({ name }) => name === member.name);
      assert.equal(text(twin), text(member), `${node.name}.${member.name} is the same in both`);
    }
  }
});

const unknown = {
  "a type": [/DOMString title;/, "octet title;", /type of ModelContextResource\.title/],
  "a nullable type": [/DOMString title;/, "DOMString? title;", /ModelContextResource\.title.*nullable/],
  "a union as an argument": [/DOMString title;/, "(DOMString or boolean) title;", /ModelContextResource\.title.*union/],
  "an integer without [EnforceRange]": [
    /\[EnforceRange\] unsigned long min/,
    "unsigned long min",
    /minUpdateInterval without \[EnforceRange\]/,
  ],
  "an extended attribute": [
    /DOMString title;/,
    "[LegacyNullToEmptyString] DOMString title;",
    /LegacyNullToEmptyString/,
  ],
  inheritance: [
    /dictionary ModelContextIcon \{/,
    "dictionary ModelContextIcon : ModelContextReadOptions {",
    /inheritance of ModelContextIcon/,
  ],
  "a static operation": [
    /undefined unregisterResource/,
    "static undefined unregisterResource",
    /static ModelContext\.unregisterResource/,
  ],
  "a second required argument": [
    /unregisterResource\(DOMString uri/,
    "unregisterResource(DOMString uri, DOMString why",
    /ModelContext\.unregisterResource without one required argument/,
  ],
  "a promise": [
    /undefined unregisterResource/,
    "Promise<undefined> unregisterResource",
    /return type of ModelContext\.unregisterResource/,
  ],
  "a whole interface": [/$/, "\n[Exposed=Window]\ninterface Extra { };\n", /Extra/],
  "a typedef": [/$/, "\ntypedef DOMString Text;\n", /typedef Text/],
};
for (const [what, [pattern, replacement, message]] of Object.entries(unknown)) {
  test(`${what} is refused by name`, (t) => {
    const { status, stderr } = checkWith(t, (idl) => idl.replace(pattern, replacement));
    assert.equal(status, 2, stderr);
    assert.match(stderr, message);
  });
}
