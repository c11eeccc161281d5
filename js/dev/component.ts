/**
 * Which component has made an element, and where in the sources, as far as the framework's
 * development build knows: React 18 and 19, Vue 3, Svelte 5. All of it is the frameworks' own, and
 * may be different in another version: what is not there is left out.
 */

// biome-ignore lint/suspicious/noExplicitAny: what frameworks leave at elements
type Any = any;

export interface Component {
  /** Its name, in that of the component around it. */
  readonly name: string;
  /** Its file, with a line where the framework knows that. */
  readonly place?: string | undefined;
  /** Or frames of stacks, the best first. Scripts are as the browser has them. */
  readonly frames?: Frame[];
}
type Frame = readonly [url: string, line: number, column: number];

/** The component of an element, or of the nearest one around it that has any. */
export function componentOf(element: Element): Component | undefined {
  try {
    for (let at: Any = element; at; at = at.parentElement ?? at.getRootNode().host) {
      const found = ofReact(at) ?? ofVue(at) ?? ofSvelte(at);
      if (found) return found;
    }
  } catch {} // a version that is unlike those above
  return undefined;
}

/** How many components around an element are looked at. */
const depth = 5;
const named = (names: Any[]): string => names.filter(Boolean).slice(0, 2).join(" in ");
const isForeign = /node_modules|\/\.next\//;

function ofReact(element: Any): Component | undefined {
  const key = Object.keys(element).find((name) => name.startsWith("__reactFiber$"));
  const names: Any[] = [];
  const frames: Frame[] = [];
  let place: string | undefined;
  // An owner may be a server component, which has a name, an owner and a stack of its own.
  for (let of = element[key!]; of && names.length < depth; of = of._debugOwner ?? of.owner) {
    names.push(of.name ?? nameOf(of.type));
    const { fileName, lineNumber } = of._debugSource ?? {}; // until React 18
    if (fileName && !isForeign.test(fileName)) place ??= `${fileName}:${lineNumber}`;
    frames.push(...framesOf((of._debugStack ?? of.debugStack)?.stack));
  }
  return key ? { name: named(names), place, frames } : undefined;
}

/** Of a class, a function, or what memo and forwardRef make of one; not of an element. */
const nameOf = (type: Any): string | undefined =>
  Object(type) === type ? type.displayName || type.name || nameOf(type.type ?? type.render) : "";

/** The frames of a component, without those of React below it. */
function framesOf(stack = ""): Frame[] {
  const [own] = stack.split(/react.stack.bottom.frame/);
  const frames = own!.matchAll(/(?:\(|@|at )(\w\S+?):(\d+):(\d+)\)?$/gm);
  return Array.from(frames, ([, url, line, column]) => [url!, +line!, +column!] as const);
}

const baseOf = (file: string): string => file.replace(/^.*\/|\.\w+$/g, "");

function ofVue({ __vueParentComponent: instance }: Any): Component | undefined {
  const types: Any[] = [];
  for (let of = instance; of && types.length < depth; of = of.parent) types.push(of.type);
  const place = types.find(({ __file }) => __file && !isForeign.test(__file))?.__file;
  const nameOf = ({ name, __name, __file }: Any) => name ?? __name ?? (__file && baseOf(__file));
  return instance && { name: named(types.map(nameOf)), place };
}

function ofSvelte({ __svelte_meta: meta }: Any): Component | undefined {
  if (!meta?.loc) return undefined;
  const { file, line } = meta.loc;
  const files = [file];
  for (let of = meta.parent; of && files.length < depth; of = of.parent)
    if (of.type === "component") files.push(of.file);
  const names = files.map(baseOf);
  return { name: named(names), place: `${file}:${line}` };
}

/** The place of a component in the app's own sources. */
export async function placeOf({ place, frames = [] }: Component): Promise<string | undefined> {
  const own = place ? [] : frames.filter(([url]) => !url.includes("node_modules"));
  for (const frame of own.slice(0, 4)) {
    const found = await original(frame).catch(() => fileOf(frame[0]));
    if (!isForeign.test(found)) return found;
  }
  return place;
}

/** A file as people write it, without the server's origin and what bundlers add. */
const fileOf = (url: string): string =>
  url
    .replace(/[?#].*/, "")
    .replace(/^(.*file:\/\/|.*?:\/\/[^/]*\/)/, "")
    .replace(/^(@fs(?=\/)|\[project\]\/|(.*\/)?\.\/)/, "");

/** The place of a frame in its source. A script without a map is a source itself. */
async function original([url, line, column]: Frame): Promise<string> {
  const get = (of: URL | string) => fetch(of, { signal: AbortSignal.timeout(1000) });
  let address: URL | string;
  if (url.startsWith("http")) {
    const [, ...maps] = (await (await get(url)).text()).split("sourceMappingURL=");
    if (!maps.length) return `${fileOf(url)}:${line}`;
    address = new URL(maps.at(-1)!.match(/^\S+/)![0], url);
  } else if ("next" in globalThis) {
    // Next.js has the maps of what runs on its server.
    const file = url.replace(/^\w+:\/\/React\/\w+\/|\?\d+$/g, "");
    address = `/__nextjs_source-map?filename=${encodeURIComponent(file)}`;
  } else return fileOf(url);
  // A policy of the page may forbid requests of data:.
  const [, inline] = `${address}`.split(";base64,");
  const bytes = inline && Uint8Array.from(atob(inline), (of) => of.charCodeAt(0));
  const map = bytes ? new TextDecoder().decode(bytes) : await (await get(address)).text();
  const [source, row] = look(JSON.parse(map), line - 1, column - 1);
  return `${fileOf(new URL(source, url).href)}:${row + 1}`;
}

const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** Looks a place up in a source map, or in the section of one that has it: each begins a line. */
function look(map: Any, line: number, column: number): [source: string, line: number] {
  const part = map.sections?.findLast(({ offset }: Any) => offset.line <= line);
  if (part) return look(part.map, line - part.offset.line, column);
  // Each is written as its difference: the column, the source, its line and column, and a name.
  const at = [0, 0, 0, 0, 0];
  let found = at;
  const rows: string[] = map.mappings.split(";").slice(0, line + 1);
  for (const [row, segments] of rows.entries()) {
    at[0] = 0;
    for (const segment of segments.match(/[^,]+/g) ?? []) {
      // Digits of base 64, the lowest first: the highest bit says that one follows.
      const fields = segment.match(/[g-z0-9+/]*[A-Za-f]/g)!;
      for (const [i, field] of fields.entries()) {
        const value = [...field].reduceRight((sum, of) => sum * 32 + (digits.indexOf(of) & 31), 0);
        at[i]! += value & 1 ? -(value >> 1) : value >> 1;
      }
      if (row === line && at[0]! <= column && fields.length > 1) found = [...at];
    }
  }
  if (found === at) throw new RangeError("the map knows nothing of this line");
  return [map.sources[found[1]!], found[2]!];
}
