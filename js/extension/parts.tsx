// Components of the popup and the options. Names that pages give are shown as text: never as markup, address or style.
import { count } from "../parts/text.ts";
import { webOrigin } from "./permissions.ts";
import type { Shown, ShownPage, Request } from "./state.ts";

export type Do = (what: Request) => void;

/** The documents of one site in the tab. */
interface Site {
  origin: string;
  pages: ShownPage[];
}

function sitesOf(shown: Shown, tab: number | undefined): Site[] {
  const sites = new Map<string, Site>();
  for (const page of shown.pages) {
    if (page.tab !== tab || !page.offers) continue;
    const site = sites.get(page.origin);
    if (site) site.pages.push(page);
    else sites.set(page.origin, { origin: page.origin, pages: [page] });
  }
  return [...sites.values()];
}

/** The origin of a tab's page, or "" if its URL is not http or https. */
export async function originOf(tab: number | undefined): Promise<string> {
  const { url = "" } = tab === undefined ? {} : await chrome.tabs.get(tab);
  return webOrigin(url);
}

/** `here` is the tab's origin. */
export function Sites({ shown, tab, here, act }: { shown: Shown; tab: number | undefined; here: string; act: Do }) {
  const sites = sitesOf(shown, tab);
  if (shown.on.only && here && !shown.origins.some(({ origin }) => origin === here))
    return (
      <section class="site" aria-label={here}>
        <h2>{here}</h2>
        <p class="state" role="status">
          Not allowed: Pagewire is not in this page, and cannot say what it offers. Allowing the site loads the page
          again.
        </p>
        <Grants origin={here} tab={tab} act={act} />
      </section>
    );
  if (!sites.length)
    return (
      <p class="empty">
        This page offers agents nothing. A page that was open before the extension was installed has to be loaded again.
      </p>
    );
  return (
    <>
      {sites.map((site) => (
        <SiteCard key={site.origin} site={site} shown={shown} act={act} />
      ))}
    </>
  );
}

/** The buttons that allow a site and then load `tab` again. */
function Grants({ origin, tab, act }: { origin: string; tab?: number | undefined; act: Do }) {
  const allow = (grant: "once" | "always") => () =>
    act({ do: "allow", origin, grant, ...(tab !== undefined && { tab }) });
  return (
    <div class="buttons">
      <button data-do="once" class="first" onClick={allow("once")}>
        Allow once
      </button>
      <button data-do="always" onClick={allow("always")}>
        Allow always
      </button>
    </div>
  );
}

function SiteCard({ site: { origin, pages }, shown, act }: { site: Site; shown: Shown; act: Do }) {
  const { grant } = pages[0]!;
  const offers = count(
    pages.reduce((n, page) => n + page.offers, 0),
    "resource or tool",
    "resources and tools",
  );
  const linked = pages.some((page) => page.linked);
  const allowed = `Allowed ${grant === "once" ? "until the browser is closed" : "always"}.`;
  const title = pages.find((page) => !page.frame)?.title;
  return (
    <section class="site" aria-label={origin}>
      <h2>{origin}</h2>
      {title && <p class="dim text">{title}</p>}
      <p class="state" role="status">
        {!grant
          ? `Offers ${offers}. Agents do not see them.`
          : shown.on.stop
            ? "Allowed, but all is stopped."
            : `${allowed} ${linked ? `Agents see ${offers}` : "No gateway is connected"}.`}
      </p>
      {grant ? (
        <div class="buttons">
          <button data-do="revoke" onClick={() => act({ do: "revoke", origin })}>
            Revoke
          </button>
          {grant === "once" && (
            <button data-do="always" onClick={() => act({ do: "allow", origin, grant: "always" })}>
              Allow always
            </button>
          )}
        </div>
      ) : (
        <Grants origin={origin} act={act} />
      )}
    </section>
  );
}

const labels = {
  stop: "Stop all sites",
  only: "Only in pages of allowed sites: other sites cannot see that Pagewire is installed",
  front: "Tell agents which tab I look at: title and address on allowed sites, only the site on others",
};

/** A setting of the extension that is on or off. */
export function Switch({ id, shown, act }: { id: keyof typeof labels; shown: Shown; act: Do }) {
  return (
    <label class="switch">
      <input
        id={id}
        type="checkbox"
        role="switch"
        checked={shown.on[id]}
        onChange={(e) => act({ do: id, on: e.currentTarget.checked })}
      />
      {labels[id]}
    </label>
  );
}

export function Gateway({ shown: { gateway } }: { shown: Shown }) {
  return (
    <p class={gateway.connected ? "gateway connected" : "gateway"} role="status">
      {gateway.connected
        ? `Connected by ${gateway.transport}.`
        : gateway.why
          ? `No gateway: ${gateway.why}`
          : "No gateway is needed now."}
    </p>
  );
}
