/** The outcome of a tool that has no result: MCP's result with `isError`, in words that the agent may see. */
import { error, stringify } from "./intrinsics.ts";

/** A failure in Pagewire's own words. */
export class Refusal {
  constructor(readonly words: string) {}
}

export const refuse = (words: string): never => {
  throw new Refusal(words);
};

/**
 * The text of a tool's output. It never throws: the tool has run, and an agent that gets a failure calls it again. A
 * BigInt becomes a string, as in most other encoders.
 */
export function textOf(name: string, output: unknown): string {
  try {
    const digits = (_key: string, value: unknown) => (typeof value === "bigint" ? `${value}` : value);
    return typeof output === "string" ? output : (stringify(output, digits) ?? `${output}`);
  } catch (cause) {
    error(`pagewire: the tool ${name} has run, and its result cannot be encoded as JSON:`, cause);
    return "The tool has run. Its result cannot be encoded as JSON: look at the page.";
  }
}

export const failure = (text: string): { isError: true; content: object[] } => ({
  isError: true,
  content: [{ type: "text", text }],
});
