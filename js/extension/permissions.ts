/**
 * The origins that the user has allowed, for good or until the browser ends. They are in the browser's storage for the
 * extension, which pages cannot reach: in `local`, or in `session`, which is in memory only. One switch stops all, and
 * forgets nothing. Another keeps the content scripts out of pages of other origins.
 */
export type Grant = "once" | "always";

export interface Permissions {
  of(origin: string): Grant | undefined;
  list(): { origin: string; grant: Grant }[];
  readonly stopped: boolean;
  /** Whether only pages of allowed origins have the content scripts. */
  readonly only: boolean;
  /** The user's name for the browser's profile, or "". */
  readonly profile: string;
  allow(origin: string, grant: Grant): Promise<void>;
  revoke(origin: string): Promise<void>;
  stop(on: boolean): Promise<void>;
  setOnly(on: boolean): Promise<void>;
  setProfile(name: string): Promise<void>;
}

const key = "origins";
const stop = "stopped";
const only = "only";
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

export async function permissions(): Promise<Permissions> {
  const { local, session } = chrome.storage;
  const kept = await local.get([key, stop, only, named]);
  const always = origins(kept[key]);
  const once = origins((await session.get(key))[key]);
  let stopped = kept[stop] === true;
  let isOnly = kept[only] === true;
  let profile = typeof kept[named] === "string" ? kept[named] : "";

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
    get stopped() {
      return stopped;
    },
    get only() {
      return isOnly;
    },
    get profile() {
      return profile;
    },
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
    async stop(on) {
      stopped = on;
      await local.set({ [stop]: on });
    },
    async setOnly(on) {
      isOnly = on;
      await local.set({ [only]: on });
    },
    async setProfile(name) {
      profile = name.trim().slice(0, maxProfile);
      await local.set({ [named]: profile });
    },
  };
}
