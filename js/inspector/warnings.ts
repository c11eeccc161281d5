// Warnings for a page's author about a resource or tool, before an agent uses it.
import type { Open, Resource, Tool } from "./feed.ts";

/**
 * More JSON than a model can make use of, in bytes; more changes in a second than one can follow.
 */
const muchJSON = 2 << 20;
const manyChanges = 50;

/** Names that say nothing. */
const empty =
  /^(.?|(my)?(data|content|doc|info|item|json|object|resource|state|test|text|thing|tool|value)?[-_ ]?\d*)$/i;

/** The warnings of a resource or tool. `open` is its followed value, if there is one. */
export function warnings(of: Resource | Tool, open?: Open): string[] {
  const name = "uri" in of ? of.title || of.name : of.name.replace(/_tab\d+$/, "");
  const { value, rate } = open ?? {};
  const json = value && (/\bjson\b/i.test(value.mimeType ?? "") || /^\s*[[{]/.test(value.text));
  return [
    of.description ? "" : "No description: a model does not learn what it is for.",
    empty.test(name) ? `The name “${name}” says nothing: a model chooses by names.` : "",
    json && value.bytes >= muchJSON ? "2 MB of JSON or more: offer its parts, or a template." : "",
    rate && rate.now >= manyChanges ? `${rate.now} changes in the last second: agents are told of few of them.` : "",
  ].filter((text) => text !== "");
}
