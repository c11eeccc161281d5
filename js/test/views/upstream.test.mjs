/**
 * The proposal to MCP Apps in idl/upstream/ext-apps: its conformance cases, replayed on our Host and checked against its
 * schema, and what its documents name. Its conformance/README.md explains the words of a case.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import { Host } from "../../../dist/test/views.host.mjs";

const root = new URL("../../../", import.meta.url);
const read = (path) => readFileSync(new URL(path, root), "utf8");
const list = (path, end) => readdirSync(new URL(path, root)).filter((name) => name.endsWith(end));
const upstream = "idl/upstream/ext-apps/";
const cases = list(`${upstream}conformance`, ".json").map((name) => [
  name,
  JSON.parse(read(`${upstream}conformance/${name}`)),
]);
const ajv = new Ajv2020({ strict: false });
const valid = ajv.compile(JSON.parse(read(`${upstream}schema.json`)));

/** A Host, and its messages that no step has taken yet, by receiver. */
class Replay {
  now = 0;
  due;
  said = new Map();
  /** The values of the names that begin with $. */
  bound = new Map();
  ports = new Map();

  constructor({ lists, maxSubscriptions, protocolVersion }) {
    const toServer = (m) => {
      if (m.method !== "resources/list") return this.say("server", m);
      const resources = lists.map((uri) => ({ uri, name: uri }));
      this.host.fromServer({ jsonrpc: "2.0", id: m.id, result: { resources } });
    };
    const home = { now: () => this.now, wake: (at) => (this.due = at), toServer };
    this.host = new Host(protocolVersion === "2026-07-28" ? "modern" : "legacy", home, { maxSubscriptions });
  }

  say(whom, message) {
    if (!this.said.has(whom)) this.said.set(whom, []);
    this.said.get(whom).push(JSON.parse(JSON.stringify(message)));
  }

  /** A message of a step, with the values of its names. */
  message(value) {
    if (Array.isArray(value)) return value.map((each) => this.message(each));
    if (typeof value !== "object") return this.bound.get(value) ?? value;
    return Object.fromEntries(Object.entries(value).map(([key, of]) => [key, this.message(of)]));
  }

  step({ view, server, is, state, sends, gets, message, times, every = 0, wait, quiet }) {
    if (quiet) return assert.deepEqual([...this.said.values()].flat(), [], "nothing else was sent");
    if (wait) return this.wait(wait);
    if (is) return this.become(view, is);
    if (state) return this.host.connection(state === "back" ? "legacy" : null);
    if (sends) return this.host.receive(this.ports.get(view), this.message(sends));
    if (gets) return this.take(view, gets, times);
    if (server === "gets") return this.take("server", message, times);
    assert.equal(server, "sends", "a step that says nothing that is known");
    for (let i = 0; i < (times ?? 1); i++) {
      this.host.fromServer(this.message(message));
      this.wait(every);
    }
  }

  become(view, state) {
    const port = this.ports.get(view) ?? this.host.open((m) => this.say(view, m));
    this.ports.set(view, port);
    if (state === "removed") return this.host.close(port);
    if (state === "torn down") return this.host.teardown(port);
    assert.equal(state, "initialized");
    this.host.receive(port, { jsonrpc: "2.0", id: 0, method: "ui/initialize", params: {} });
    this.host.receive(port, { jsonrpc: "2.0", method: "ui/notifications/initialized" });
  }

  wait(ms) {
    for (const end = this.now + ms; ; this.host.tick()) {
      if (!(this.due <= end)) {
        this.now = end;
        return;
      }
      this.now = Math.max(this.now, this.due);
    }
  }

  /** Takes the next message to a receiver, which must match, or as many matching ones as `times` allows. */
  take(whom, want, [least, most] = [1, 1]) {
    const said = this.said.get(whom) ?? [];
    let n = 0;
    for (let i = 0; i < said.length && n < most; ) {
      if (this.matches(said[i], want)) {
        assert.ok(valid(said.splice(i, 1)[0]), ajv.errorsText(valid.errors));
        n++;
      } else if (most === 1) break;
      else i++;
    }
    const next = JSON.stringify(said[0]);
    assert.ok(n >= least, `${whom} got ${n} times ${JSON.stringify(want)}, and next ${next}`);
  }

  /** Whether a message has all wanted members. A name that begins with $ gets the value at its first match. */
  matches(is, want) {
    if (typeof want === "string" && want.startsWith("$")) {
      if (!this.bound.has(want)) this.bound.set(want, is);
      return is !== undefined && this.bound.get(want) === is;
    }
    if (typeof want !== "object" || Array.isArray(want)) return JSON.stringify(is) === JSON.stringify(want);
    return typeof is === "object" && Object.entries(want).every(([key, value]) => this.matches(is[key], value));
  }
}

const words = "about requires lists maxSubscriptions protocolVersion steps".split(" ");

for (const [name, of] of cases) {
  test(`conformance case ${name}`, () => {
    for (const key of Object.keys(of)) assert.ok(words.includes(key), `${key} is no member of a case`);
    const replay = new Replay(of);
    for (const [i, step] of of.steps.entries()) {
      try {
        replay.step(step);
      } catch (cause) {
        throw new Error(`step ${i + 1}: ${cause.message}`, { cause });
      }
    }
  });
}

test("the schema refuses what is none of the proposal's messages", () => {
  const updated = { jsonrpc: "2.0", method: "notifications/resources/updated", params: { uri: "data://a" } };
  assert.ok(valid(updated));
  for (const wrong of [
    { ...updated, id: 1 },
    { ...updated, params: {} },
    { ...updated, jsonrpc: "1.0" },
  ])
    assert.ok(!valid(wrong), JSON.stringify(wrong));
});

test("each requirement of the proposal has a case, or says that it has none", () => {
  assert.ok(cases.length >= 15);
  const named = new Set(cases.flatMap(([, { requires }]) => requires));
  const text = read(`${upstream}resource-subscriptions.md`).replaceAll("\n  ", " ");
  for (const [, name, rule] of text.matchAll(/^\* \*\*([A-Z]+-\d)\*\*(.*)/gm))
    assert.ok(named.delete(name) || rule.includes("(no case:"), `${name} has no case`);
  assert.deepEqual([...named], [], "requirements that the proposal does not have");
});

test("the tests that the documents for upstream name exist", () => {
  const code = ["e2e", "js/build", "bridge/gateway/events"]
    .flatMap((folder) => list(folder, "_test.go").map((name) => read(`${folder}/${name}`)))
    .join("\n");
  const documents = list("idl/upstream", "").flatMap((folder) =>
    list(`idl/upstream/${folder}`, ".md").map((name) => `idl/upstream/${folder}/${name}`),
  );
  assert.ok(documents.length >= 5);
  for (const document of documents)
    for (const [name] of read(document).matchAll(/\bTest[A-Z]\w+/g))
      assert.ok(code.includes(`func ${name}`), `${document} names ${name}, which is no test`); // RUN= takes a beginning
});
