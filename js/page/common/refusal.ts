/**
 * The outcome of a tool that has no result: MCP's result with `isError`, in words that the agent
 * may see.
 */
import { isObject } from "../early/basics.ts";
import type { CoreSettings } from "../early/shared.ts";
import { error, parse, stringify } from "./intrinsics.ts";

/** A failure in Pagewire's own words. */
export class Refusal {
  constructor(readonly words: string) {}
}

export const refuse = (words: string): never => {
  throw new Refusal(words);
};

/**
 * What an agent gets of a tool whose output JSON cannot hold: one that gets a failure calls again.
 */
export const unencodable = "The tool has run. Its result cannot be encoded as JSON: look at the page.";

/**
 * The text of a tool's output. A BigInt becomes a string. Throws `unencodable`; the console has the
 * cause.
 */
export function encode(output: unknown): string {
  try {
    const digits = (_key: string, value: unknown) => (typeof value === "bigint" ? `${value}` : value);
    return typeof output === "string" ? output : (stringify(output, digits) ?? `${output}`);
  } catch (cause) {
    error("pagewire: a tool's result cannot be encoded as JSON:", cause);
    throw new TypeError(unencodable);
  }
}

/** A JSON document; any other text as it is. */
export function jsonOf(text: string): unknown {
  try {
    const value: unknown = parse(text);
    if (isObject(value)) return value;
  } catch {}
  return text;
}

/** Whether agents get the messages of errors. An attribute is text, and "" without a value. */
export const exposes = ({ exposeErrors }: CoreSettings): boolean =>
  exposeErrors === "" || (!!exposeErrors && exposeErrors !== "false");

export const failure = (text: string): { isError: true; content: object[] } => ({
  isError: true,
  content: [{ type: "text", text }],
});
