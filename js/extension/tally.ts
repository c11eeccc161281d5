/**
 * What a person is shown of a document: what it offers agents, what they watch and how often they read, as the frames
 * of its link tell. Nothing depends on it: what makes no sense here the core at the other end refuses. Contents are
 * never looked at.
 */

/** Bounds what is kept of one document: resources, and their URIs and names together, in UTF-16 code units. */
const maxResources = 10_000;
const maxText = 4 << 20;

type Call = readonly unknown[];

/** The calls of a frame; none of one that is not made of calls. */
function callsOf(frame: string): readonly Call[] {
  if (frame[0] !== "[" || frame === "[]") return [];
  try {
    return (JSON.parse(frame) as unknown[]).filter((call): call is Call => Array.isArray(call));
  } catch {
    return [];
  }
}

/** What the JSON text of an object, or of an array, says. */
function parsed(text: unknown): unknown {
  try {
    return JSON.parse(text as string);
  } catch {
    return undefined;
  }
}

/** Begins to count. `stir` is called when something has changed. */
export function tally(stir: () => void) {
  /** URI to name. */
  const resources = new Map<string, string>();
  const watched = new Set<string>();
  let size = 0;
  let tools = 0;
  let reads = 0;
  let lastRead = 0;

  const forget = (uri: string) => {
    const name = resources.get(uri);
    if (name === undefined) return;
    size -= uri.length + name.length;
    resources.delete(uri);
  };
  const offer = (descriptor: unknown) => {
    const { uri, name, title } = (parsed(descriptor) ?? {}) as { [member: string]: unknown };
    if (typeof uri !== "string") return;
    forget(uri);
    const shown = `${title ?? name ?? ""}`;
    if (resources.size >= maxResources || size + uri.length + shown.length > maxText) return;
    size += uri.length + shown.length;
    resources.set(uri, shown);
  };
  return {
    resources: resources as ReadonlyMap<string, string>,
    watched: watched as ReadonlySet<string>,
    get tools() {
      return tools;
    },
    get reads() {
      return reads;
    },
    get lastRead() {
      return lastRead;
    },
    /** Takes a frame of the page. */
    page(frame: string): void {
      for (const [name, a] of callsOf(frame)) {
        if (name === "register") offer(a);
        else if (name === "unregister") forget(a as string);
        else if (name === "setTools") {
          const list = parsed(a);
          tools = Array.isArray(list) ? list.length : 0;
        } else continue;
        stir();
      }
    },
    /** Takes a frame of the core. */
    core(frame: string): void {
      for (const [name, a, b] of callsOf(frame)) {
        if (name === "read") {
          reads++;
          lastRead = Date.now();
        } else if (name === "watched" && b) watched.add(a as string);
        else if (name === "watched") watched.delete(a as string);
        else continue;
        stir();
      }
    },
    /** The link has ended. How often was read stays. */
    clear(): void {
      resources.clear();
      watched.clear();
      size = tools = 0;
    },
  };
}
