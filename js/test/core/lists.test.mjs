/** Agents of a core and callers of the page's tools get the same members of a resource. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { operations, register, resourceTools, revisionsOf, shared } from "../../../dist/test/page.mjs";
import { origin, page } from "./harness.mjs";

/** A value for each member of the dictionary; MCP does not have those in `ours`. */
const members = {
  name: "n",
  title: "t",
  description: "d",
  mimeType: "text/plain",
  size: 0,
  icons: [{ src: "data:,x", mimeType: "image/png", sizes: ["any"], theme: "dark" }],
  annotations: { audience: ["user"], lastModified: "2026-01-01T00:00:00Z", priority: 0, subscribeHint: true },
};
const ours = { uriSchema: { type: "object" }, contentSchema: { type: "array" }, minUpdateInterval: 200 };

const _meta = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientCapabilities": {},
};
function list(p, method, member) {
  p.core.open(1);
  p.core.receive(1, JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { _meta } }));
  p.core.close(1);
  return JSON.parse(p.log.findLast(([what]) => what === "send")[2]).result[member];
}

test("resources_list shows what resources/list and resources/templates/list show", async () => {
  const [Resource] = operations.find(([name]) => name === "registerResource")[1];
  const known = ["uri", "read", ...Object.keys(members), ...Object.keys(ours)];
  assert.deepEqual(Resource[2].map(([name]) => name).sort(), known.sort(), "a member has no value here");

  const p = await page();
  shared.core = p.core;
  const given = { origin, active: () => true, allowed: true };
  // A template has no size.
  const { size: _, ...templateMembers } = members;
  register({ uri: `${origin}/doc`, ...members, ...ours, read() {} }, undefined, given, "");
  register({ uri: `${origin}/item/{id}`, ...templateMembers, minUpdateInterval: 200, read() {} }, undefined, given, "");

  const tools = resourceTools({ shared }, revisionsOf(shared));
  const listed = await tools.answer("resources_list", {}, undefined);
  const [resource] = list(p, "resources/list", "resources");
  const [template] = list(p, "resources/templates/list", "resourceTemplates");
  assert.deepEqual(resource._meta, { "pagewire/schema": ours.contentSchema });
  // uriSchema describes the parameters after the URI to a caller; MCP has no such member.
  assert.deepEqual(listed.resources, [{ ...resource, uriSchema: ours.uriSchema }]);
  assert.deepEqual(listed.resourceTemplates, [template]);
});
