/**
 * The parts of pages that the user shares with agents, apart from all else that is granted: rules
 * by the origin and the part's name. They are in the browser's storage for the extension, which
 * pages cannot reach, until the user forgets them. Rules come from a document's process, so they
 * are checked and bounded.
 */
import type { Anchor } from "../shown/anchor.ts";
import type { Part } from "../shown/part.ts";
import type { Shown, View } from "../shown/shown.ts";

export type Parts = Readonly<Record<string, Part>>;

const key = "parts";
/** The most parts of a site, and the longest text in a rule. */
const maxParts = 100;
const maxText = 2000;

/** Whether a part may have a name: it is the end of a URI. */
export const isPartName = (name: string): boolean => /^[A-Za-z0-9][\w-]{0,63}$/.test(name);

/** A rule that a picker has made; undefined if it is none. */
export function ruleFrom(message: unknown): Part | undefined {
  const { path, find, as } = (message ?? {}) as Record<string, unknown>;
  const isText = (text: unknown) => typeof text === "string" && text.length <= maxText;
  const isAnchor = (anchor: unknown) =>
    typeof anchor === "object" &&
    Object.entries(anchor ?? {}).every(([of, text]) => /^(css|under|row|column|place)$/.test(of) && isText(text));
  if (!isText(path) || !Array.isArray(find) || !find.length || find.length > 6 || !find.every(isAnchor))
    return undefined;
  if (as !== "text" && as !== "table" && as !== "form") return undefined;
  return { path: path as string, find: find as Anchor[], as };
}

/** Whether a page has a part, by its address. A * stands for one name in the path. */
function isAt({ path = "" }: Part, url: string): boolean {
  const names = new URL(url).pathname.split("/");
  const of = path.split("/");
  return !path || (of.length === names.length && of.every((name, i) => name === "*" || name === names[i]));
}

/**
 * A view of the whole, or of a part. While the document has another address than the part's page,
 * it answers as if the part were not there, and tells nothing: the worker learns of a new address
 * only afterwards.
 */
export function viewOn(page: Pick<Shown, "view">, changed: () => void, part?: Part): View {
  const isHere = () => !part || isAt(part, location.href);
  const view = page.view(() => isHere() && changed(), part);
  return {
    async read(options) {
      const text = isHere() ? await view.read(options) : undefined;
      return isHere() ? text : undefined;
    },
    watch: (on) => view.watch(on),
  };
}

export class Picked {
  /** Origin to name to rule, as the storage has it. No origin is without parts. */
  private constructor(private readonly kept: Record<string, Record<string, Part>>) {}

  static async load(): Promise<Picked> {
    return new Picked(((await chrome.storage.local.get(key))[key] as Record<string, Record<string, Part>>) ?? {});
  }

  list(): { origin: string; name: string }[] {
    return Object.entries(this.kept).flatMap(([origin, named]) => Object.keys(named).map((name) => ({ origin, name })));
  }

  origins(): string[] {
    return Object.keys(this.kept);
  }

  /** The parts of a page. */
  at(origin: string, url: string): Parts {
    return Object.fromEntries(Object.entries(this.kept[origin] ?? {}).filter(([, part]) => isAt(part, url)));
  }

  of(origin: string, name: string): Part | undefined {
    const named = this.kept[origin] ?? {};
    return Object.hasOwn(named, name) ? named[name] : undefined;
  }

  /**
   * Adds a part. Returns false, and does nothing, if that is no name, or another part has it, or
   * there are too many.
   */
  async add(origin: string, name: string, part: Part): Promise<boolean> {
    const named = this.kept[origin] ?? {};
    if (!isPartName(name) || Object.hasOwn(named, name) || Object.keys(named).length >= maxParts) return false;
    this.kept[origin] = { ...named, [name]: part };
    await this.keep();
    return true;
  }

  async rename(origin: string, was: string, name: string): Promise<void> {
    const part = this.of(origin, was);
    if (part && (await this.add(origin, name, part))) await this.forget(origin, was);
  }

  async forget(origin: string, name: string): Promise<void> {
    delete this.kept[origin]?.[name];
    if (!Object.keys(this.kept[origin] ?? {}).length) delete this.kept[origin];
    await this.keep();
  }

  private async keep(): Promise<void> {
    await chrome.storage.local.set({ [key]: this.kept });
  }
}
