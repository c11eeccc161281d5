/** What Pagewire takes from a Standard Schema: its check of values, and its JSON Schema. No library is imported. */
import type * as types from "../store.d.ts";

/** The JSON Schema of what a schema accepts, or undefined, with a warning, if its library has none. */
export function jsonSchemaOf(schema: types.StandardSchema): object | undefined {
  try {
    return schema["~standard"].jsonSchema?.input({ target: "draft-2020-12" });
  } catch (error) {
    console.warn("pagewire: a schema has no JSON Schema, so agents get none:", error);
    return undefined;
  }
}

/** What a schema makes of a value. Rejects with the path and message of its first issue. */
export async function checked(schema: types.StandardSchema, value: unknown, what: string): Promise<unknown> {
  const result = await schema["~standard"].validate(value);
  const issue = result.issues?.[0];
  if (!issue) return (result as { value: unknown }).value;
  const path = issue.path?.map((part) => String(typeof part === "object" ? part.key : part)).join(".");
  throw new TypeError(`pagewire: ${what} does not fit its schema at '${path ?? ""}': ${issue.message}`);
}

export const tool: typeof types.tool = (schema, { execute, ...rest }) => ({
  ...rest,
  inputSchema: jsonSchemaOf(schema),
  execute: async (input, options) =>
    execute((await checked(schema, input, `the input of '${rest.name}'`)) as never, options),
});
