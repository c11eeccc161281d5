interface Modules {
  "node:fs": { readFileSync(file: string): BufferSource };
  "node:url": { fileURLToPath(url: string): string };
  "node:util": { TextEncoder: typeof TextEncoder; TextDecoder: typeof TextDecoder };
}

/**
 * Returns a module of Node (20.16 or newer) without an import, which bundlers for pages refuse;
 * none in a browser.
 */
export const { getBuiltinModule: builtin } = ((globalThis as { process?: unknown }).process ?? {}) as {
  getBuiltinModule?<N extends keyof Modules>(name: N): Modules[N];
};
