/**
 * The origins that the user has allowed, for good or until the browser ends: to let agents have
 * what pages offer, and, apart from that, all that they show. They are in the browser's storage for
 * the extension, which pages cannot reach: in `local`, or in `session`, which is in memory only.
 * One switch stops all, and forgets nothing. Another keeps the content scripts out of pages of
 * other origins.
 */
export type Grant = "once" | "always";

/** What is allowed: what a site offers, or everything it shows. */
export type What = "offers" | "shows";

/** A site that is allowed. */
export interface GrantedSite {
  readonly origin: string;
  readonly grant: Grant;
}

export interface Grants {
  of(origin: string): Grant | undefined;
  list(): GrantedSite[];
  allow(origin: string, grant: Grant): Promise<void>;
  revoke(origin: string): Promise<void>;
}

/**
 * A switch of the user's: whether all is stopped, whether only pages of allowed origins have the
 * content scripts, and whether agents are told which tab is in front.
 */
export type Switch = "stop" | "only" | "front";

export interface Permissions extends Readonly<Record<What, Grants>> {
  readonly on: Readonly<Record<Switch, boolean>>;
  /** The user's name for the browser's profile, or "". */
  readonly profile: string;
  turn(what: Switch, on: boolean): Promise<void>;
  setProfile(name: string): Promise<void>;
}

/** The keys of the grants. */
const keys = { offers: "origins", shows: "shows" };
/** The keys of the switches. */
const switches = { stop: "stopped", only: "only", front: "front" };
const named = "profile";
/** The longest name of a profile, in UTF-16 code units: the gateway takes 64 bytes. */
export const maxProfile = 20;

const isOrigin = (origin: string) => {
  try {
    const { protocol, origin: canonical } = new URL(origin);
    return canonical === origin && (protocol === "https:" || protocol === "http:");
  } catch {
    return false;
  }
};

const origins = (kept: unknown) =>
  new Set(
    Array.isArray(kept)
      ? kept.filter((origin): origin is string => typeof origin === "string" && isOrigin(origin))
      : [],
  );

async function grants(key: string): Promise<Grants> {
  const { local, session } = chrome.storage;
  const always = origins((await local.get(key))[key]);
  const once = origins((await session.get(key))[key]);
  const keep = async () => {
    await Promise.all([local.set({ [key]: [...always] }), session.set({ [key]: [...once] })]);
  };
  return {
    of: (origin) => (always.has(origin) ? "always" : once.has(origin) ? "once" : undefined),
    list: () =>
      [
        ...[...always].map((origin) => ({ origin, grant: "always" as const })),
        ...[...once].filter((origin) => !always.has(origin)).map((origin) => ({ origin, grant: "once" as const })),
      ].sort((a, b) => (a.origin < b.origin ? -1 : 1)),
    async allow(origin, grant) {
      if (!isOrigin(origin)) throw new TypeError(`${origin} is not the origin of a web page`);
      (grant === "always" ? always : once).add(origin);
      (grant === "always" ? once : always).delete(origin);
      await keep();
    },
    async revoke(origin) {
      always.delete(origin);
      once.delete(origin);
      await keep();
    },
  };
}

export async function permissions(): Promise<Permissions> {
  const { local } = chrome.storage;
  const [offers, shows, kept] = await Promise.all([
    grants(keys.offers),
    grants(keys.shows),
    local.get([...Object.values(switches), named]),
  ]);
  const on = {
    stop: kept[switches.stop] === true,
    only: kept[switches.only] === true,
    front: kept[switches.front] === true,
  };
  let profile = typeof kept[named] === "string" ? kept[named] : "";
  return {
    ...{ offers, shows, on },
    get profile() {
      return profile;
    },
    async turn(what, to) {
      on[what] = to;
      await local.set({ [switches[what]]: to });
    },
    async setProfile(name) {
      profile = name.trim().slice(0, maxProfile);
      await local.set({ [named]: profile });
    },
  };
}
