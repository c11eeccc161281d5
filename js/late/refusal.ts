/** The failure of a tool: MCP's result with `isError`, in words that the agent may see. */

/** A failure in Pagewire's own words. */
export class Refusal {
  constructor(readonly words: string) {}
}

export const refuse = (words: string): never => {
  throw new Refusal(words);
};

export const failure = (text: string): { isError: true; content: object[] } => ({
  isError: true,
  content: [{ type: "text", text }],
});
