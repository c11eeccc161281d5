// Components of the popup and the options. Names that pages give are shown as text: never as
// markup, address or style.
import { count, size } from "../parts/text.ts";
import type { Grant, What } from "./permissions.ts";
import { mostNames } from "./messages.ts";
import type { PanelState, PanelPage, Request } from "./state.ts";
import { webOrigin } from "./tabs.ts";
import { notInstalled } from "./transport.ts";

export type Do = (what: Request) => void;

/** The documents of one site in the tab. */
interface Site {
  origin: string;
  pages: PanelPage[];
}

function sitesOf(state: PanelState, tab: number | undefined): Site[] {
  const sites = new Map<string, Site>();
  for (const page of state.pages) {
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
export function Sites({
  state,
  tab,
  here,
  act,
}: {
  state: PanelState;
  tab: number | undefined;
  here: string;
  act: Do;
}) {
  const sites = sitesOf(state, tab);
  if (state.on.only && here && !state.origins.some(({ origin }) => origin === here))
    return (
      <section class="site" aria-label={here}>
        <h2>{here}</h2>
        <p class="state" role="status">
          Not allowed. Pagewire is not in this page, so it can't say what the page offers. Allowing the site reloads the
          page.
        </p>
        <Grants what="offers" origin={here} tab={tab} act={act} />
      </section>
    );
  if (!sites.length)
    return (
      <section class="site" aria-label="This page">
        <p class="dim">
          {here
            ? "This page offers agents nothing. If it was open before you installed Pagewire, reload it."
            : "Agents can't see this page: it belongs to the browser."}
        </p>
        {here && <Reload tab={tab} />}
      </section>
    );
  return (
    <>
      {sites.map((site) => (
        <SiteCard key={site.origin} site={site} state={state} act={act} />
      ))}
    </>
  );
}

const Reload = ({ tab }: { tab: number | undefined }) => (
  <div class="buttons">
    <button data-do="reload" onClick={() => void chrome.tabs.reload(tab!)}>
      Reload the page
    </button>
  </div>
);

interface Asks {
  what: What;
  origin: string;
  act: Do;
}

/** Two groups of buttons have the same names. */
const groups = { offers: "What the site offers", shows: "Everything the site shows" };

/** The buttons that allow a site and then load `tab` again. */
function Grants({ what, origin, tab, act }: Asks & { tab?: number | undefined }) {
  const allow = (grant: Grant) => () => act({ do: "allow", what, origin, grant, ...(tab !== undefined && { tab }) });
  return (
    <div class="buttons" role="group" aria-label={groups[what]}>
      <button data-do="once" class="main" onClick={allow("once")}>
        Allow once
      </button>
      <button data-do="always" onClick={allow("always")}>
        Allow always
      </button>
    </div>
  );
}

/** The buttons of a site that is allowed. */
function Granted({ what, origin, grant, act }: Asks & { grant: Grant }) {
  return (
    <div class="buttons" role="group" aria-label={groups[what]}>
      <button data-do="revoke" onClick={() => act({ do: "revoke", what, origin })}>
        Revoke
      </button>
      {grant === "once" && (
        <button data-do="always" onClick={() => act({ do: "allow", what, origin, grant: "always" })}>
          Allow always
        </button>
      )}
    </div>
  );
}

const allowed = (grant: Grant) => `Allowed ${grant === "once" ? "until the browser is closed" : "always"}.`;

function SiteCard({ site: { origin, pages }, state, act }: { site: Site; state: PanelState; act: Do }) {
  const { grant } = pages[0]!;
  const all = pages.reduce((n, page) => n + page.offers, 0);
  const offers = count(all, "resource or tool", "resources and tools");
  const names = new Set(pages.flatMap((page) => page.names.split("\n", mostNames)).filter((name) => name.trim()));
  const linked = pages.some((page) => page.linked);
  const title = pages.find((page) => !page.frame)?.title;
  return (
    <section class="site" aria-label={origin}>
      <h2>{origin}</h2>
      {title && <p class="dim text">{title}</p>}
      <p class="state" role="status">
        {!grant
          ? `Offers ${offers}. Agents do not see them yet.`
          : state.on.stop
            ? "Allowed, but all sites are stopped."
            : `${allowed(grant)} ${linked ? `Agents see ${offers}` : "Not connected yet"}.`}
      </p>
      <ul class="names" aria-label="What agents can read and call">
        {[...names].map((name) => (
          <li key={name}>{name}</li>
        ))}
        {all > names.size && <li class="dim">and {all - names.size} more</li>}
      </ul>
      {grant ? (
        <Granted what="offers" origin={origin} grant={grant} act={act} />
      ) : (
        <Grants what="offers" origin={origin} act={act} />
      )}
    </section>
  );
}

/**
 * Everything that the tab's site shows. It can be allowed only after a look at what agents will
 * read.
 */
export function Everything({ state, tab, here, act }: { state: PanelState; tab: number; here: string; act: Do }) {
  const grant = state.shows.find(({ origin }) => origin === here)?.grant;
  const { preview } = state;
  const seen = preview?.tab === tab && preview.origin === here && !preview.part ? preview : undefined;
  const { text } = seen ?? {};
  return (
    <section class="site" aria-label={`Everything that ${here} shows`}>
      <h2>Everything this site shows</h2>
      <p class="state" role="status">
        {!grant
          ? "Agents do not see it. Look at the text before you allow it."
          : state.on.stop
            ? "Allowed, but all sites are stopped."
            : `${allowed(grant)} Agents can read the text of each open page of ${here}.`}
      </p>
      {text !== undefined && (
        <>
          <p class="dim">
            {`Agents read this (${size(new TextEncoder().encode(text).length)}) and are told when it changes. They can ` +
              "read every other page of the site in the same way."}
          </p>
          <pre class="preview text" tabIndex={0} role="region" aria-label="What agents read">
            {text}
          </pre>
        </>
      )}
      {seen && text === undefined && (
        <>
          <p class="dim">This page can't be read now.</p>
          <Reload tab={tab} />
        </>
      )}
      <div class="buttons">
        <button data-do="preview" onClick={() => act({ do: "preview", tab })}>
          Look at what agents {grant ? "read" : "would read"}
        </button>
      </div>
      {grant ? (
        <Granted what="shows" origin={here} grant={grant} act={act} />
      ) : (
        text !== undefined && <Grants what="shows" origin={here} act={act} />
      )}
    </section>
  );
}

const labels = {
  stop: ["Stop all sites", ""],
  only: ["Only in pages of allowed sites", "Other sites can't tell that Pagewire is installed."],
  front: ["Tell agents which tab I look at", "Title and address on allowed sites, only the site on others."],
} as const;

/** A setting of the extension that is on or off. */
export function Switch({ id, state, act }: { id: keyof typeof labels; state: PanelState; act: Do }) {
  const [label, effect] = labels[id];
  return (
    <div class="switch">
      <label for={id}>{label}</label>
      <input
        id={id}
        type="checkbox"
        role="switch"
        aria-describedby={`${id}-effect`}
        checked={state.on[id]}
        onChange={(e) => act({ do: id, on: e.currentTarget.checked })}
      />
      <small id={`${id}-effect`}>{effect}</small>
    </div>
  );
}

const installing = "https://github.com/pagewire/pagewire/blob/main/demo/docs/install.md";

export function Gateway({ state: { gateway }, act }: { state: PanelState; act: Do }) {
  const { connected, transport, why } = gateway;
  return (
    <div class={connected ? "gateway connected" : "gateway"}>
      <p class={why ? "why" : connected ? "" : "dim"} role="status">
        {connected ? `Connected by ${transport}.` : why || "Not connected: nothing is shared."}
      </p>
      {why === notInstalled && (
        <button data-do="install" class="main" onClick={() => void chrome.tabs.create({ url: installing })}>
          Install
        </button>
      )}
      {why && (
        <button data-do="retry" onClick={() => act({ do: "retry" })}>
          Try again
        </button>
      )}
    </div>
  );
}
