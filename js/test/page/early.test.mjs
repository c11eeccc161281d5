// What every page carries: the tools that it registers, its options, and its end.
import assert from "node:assert/strict";
import { mock, test } from "node:test";

mock.method(console, "error", () => {}); // before the page layer takes them
mock.method(console, "warn", () => {});
globalThis.window = globalThis;
globalThis.navigator ??= {};
const { agentsOf, boot, install, shared } = await import("../../../dist/test/page.mjs");

/** A context like a browser's, with a registerResource of its own: then only registerTool is replaced. */
class Context {
  tools = new Map();
  async registerTool({ annotations, description, execute, inputSchema, name, outputSchema, title }) {
    if (this.tools.has(name)) throw new DOMException("Duplicate tool name", "InvalidStateError");
    this.tools.set(name, { annotations, description, execute, inputSchema, name, outputSchema, title });
  }
  executeTool() {}
  registerResource() {}
}

const settings = { freshState: { fresh: ["/a"] } };
function contextOf() {
  const modelContext = new Context();
  globalThis.document = { modelContext };
  install(
    {},
    () => assert.fail(),
    settings,
    () => false,
  );
  return modelContext;
}

test("a tool may be an object of a class, with private fields", async () => {
  class Tool {
    #name = "fresh";
    #inputSchema = { type: "object", properties: { id: { type: "string" } } };
    get name() {
      return this.#name;
    }
    get title() {
      return `the ${this.#name}`;
    }
    get description() {
      return `is ${this.#name}`;
    }
    get annotations() {
      return { readOnlyHint: this.#name === "fresh" };
    }
    get inputSchema() {
      return this.#inputSchema;
    }
    get outputSchema() {
      return this.#inputSchema;
    }
    execute({ id }) {
      return `${this.#name} ${id}`;
    }
  }
  const context = contextOf();
  await context.registerTool(new Tool());
  const { execute, inputSchema, ...others } = context.tools.get("fresh");
  assert.deepEqual(others, {
    annotations: { readOnlyHint: true },
    description: "is fresh",
    name: "fresh",
    outputSchema: { type: "object", properties: { id: { type: "string" } } },
    title: "the fresh",
  });
  assert.deepEqual(Object.keys(inputSchema.properties), ["id", "pagewire_since"]);
  settings.freshState = {};
  assert.equal(await execute({ id: 5 }), "fresh 5");
});

test("a tool that the context refuses leaves the hints of the one that has its name", async () => {
  const context = contextOf();
  const register = (annotations) => context.registerTool({ name: "pay", description: "d", execute() {}, annotations });
  context.tools.set("pay", {});
  await assert.rejects(register({ debugging: true }), { name: "InvalidStateError" });
  assert.equal(shared.annotated.get("pay"), undefined);
  context.tools.clear();
  await register({ consequentialHint: true });
  await assert.rejects(register({ consequentialHint: false }), { name: "InvalidStateError" });
  assert.deepEqual(shared.annotated.get("pay"), { consequentialHint: true });
});

test("origins may be none, and are apart by commas and spaces", () => {
  globalThis.document = undefined;
  const pagewire = boot("https://x.test/", {});
  for (const origins of [[], " ", ["https://a.test", "https://b.test"], "https://a.test,  https://b.test "])
    assert.doesNotThrow(() => pagewire.configure({ origins }), `${origins}`);
  assert.throws(() => pagewire.configure({ origins: "a.test" }), TypeError);
});

test("uninstall() while the core fails to load rejects nothing besides", async () => {
  const agents = agentsOf({ shared, settings: { core: "data:text/javascript,throw 0" }, emit() {} });
  const arriving = agents.arrive();
  await Promise.all([assert.rejects(arriving, /no core from/), agents.shutDown("pagewire was uninstalled")]);
});
