/**
 * The use of a Standard Schema: its check of values, and its JSON Schema. No library is imported.
 */
import type * as types from "../store.d.ts";

/**
 * Bundlers replace process.env.NODE_ENV; a page without a bundler has no process, and counts as
 * production.
 */
declare const process: { env: { NODE_ENV?: string } };
function inDevelopment(): boolean {
  try {
    return process.env.NODE_ENV !== "production";
  } catch {
    return false;
  }
}

/**
 * The JSON Schema of a schema's input, or undefined. Warns if the schema should have one and fails
 * to make it.
 */
export function jsonSchemaOf(schema: types.StandardSchema | undefined): object | undefined {
  try {
    return schema?.["~standard"].jsonSchema?.input({ target: "draft-2020-12" });
  } catch (error) {
    console.warn("pagewire: a schema has no JSON Schema, so agents get none:", error);
    return undefined;
  }
}

/** The output of a schema for a value. Rejects with the path and message of its first issue. */
export async function checked(schema: types.StandardSchema, value: unknown, what: string): Promise<unknown> {
  const result = await schema["~standard"].validate(value);
  const issue = result.issues?.[0];
  if (!issue) return (result as { value: unknown }).value;
  const path = issue.path?.map((part) => String(typeof part === "object" ? part.key : part)).join(".");
  throw new TypeError(`pagewire: ${what} does not fit its schema at '${path ?? ""}': ${issue.message}`);
}

/**
 * Returns the contents of a value. In development it rejects if the value does not fit its schema.
 */
export const fitting = <Contents>(
  contents: Contents,
  value: unknown,
  schema: types.StandardSchema | undefined,
  uri: string,
): Contents | Promise<Contents> =>
  schema && inDevelopment() ? checked(schema, value, `'${uri}'`).then(() => contents) : contents;

export const resource: typeof types.resource = (schema, { read, ...rest }) => ({
  ...rest,
  mimeType: rest.mimeType ?? "application/json",
  contentSchema: rest.contentSchema ?? jsonSchemaOf(schema),
  async read(uri, options) {
    const value = await read(uri, options);
    return fitting(JSON.stringify(value) ?? "null", value, schema, uri);
  },
});

export const tool: typeof types.tool = (schema, { execute, ...rest }) => ({
  ...rest,
  inputSchema: jsonSchemaOf(schema),
  execute: async (input, options) =>
    execute((await checked(schema, input, `the input of '${rest.name}'`)) as never, options),
});
