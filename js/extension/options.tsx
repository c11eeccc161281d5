// The options: every site that the user has allowed, the switches, and the refusals.
import { render } from "preact";
import { Gateway, Switch } from "./parts.tsx";
import { Parts } from "./shares.tsx";
import { maxProfile, type GrantedSite, type What } from "./permissions.ts";
import { subscribe, type PanelState } from "./state.ts";

const root = document.getElementById("app")!;

function Origins({ what, sites }: { what: What; sites: readonly GrantedSite[] }) {
  return (
    <ul class="origins">
      {sites.map(({ origin, grant }) => (
        <li key={origin}>
          <span class="text">{origin}</span>
          <span class="dim">{grant === "once" ? "until the browser is closed" : "always"}</span>
          <button
            data-origin={origin}
            aria-label={`Revoke ${origin}`}
            onClick={() => act({ do: "revoke", what, origin })}
          >
            Revoke
          </button>
        </li>
      ))}
    </ul>
  );
}

const draw = (state: PanelState) =>
  render(
    <>
      <header>
        <h1 class="brand">Pagewire</h1>
      </header>
      <main>
        <section class="site" aria-labelledby="sites">
          <h2 id="sites">Allowed sites</h2>
          <Switch id="stop" state={state} act={act} />
          <Switch id="only" state={state} act={act} />
          <Switch id="front" state={state} act={act} />
          {!state.origins.length && (
            <p class="empty">
              {state.on.only
                ? "None yet. Open a site, and allow it with Pagewire's button in the toolbar."
                : "None yet. When a page offers something, Pagewire's button in the toolbar shows a question mark."}
            </p>
          )}
          <Origins what="offers" sites={state.origins} />
        </section>
        {state.shows.length > 0 && (
          <section class="site" aria-labelledby="shows">
            <h2 id="shows">Sites where agents read everything shown</h2>
            <Origins what="shows" sites={state.shows} />
          </section>
        )}
        {state.parts.length > 0 && (
          <section class="site" aria-labelledby="parts">
            <h2 id="parts">Parts of pages that agents read</h2>
            <Parts state={state} act={act} />
          </section>
        )}
        <section class="site" aria-labelledby="gateway">
          <h2 id="gateway">Gateway</h2>
          <Gateway state={state} act={act} />
          <label>
            What agents call this browser profile:{" "}
            <input
              id="profile"
              maxLength={maxProfile}
              value={state.profile}
              onChange={(e) => act({ do: "profile", name: e.currentTarget.value })}
            />
          </label>
          <p class="dim">
            Agents connect through <code>pagewire serve</code> on this computer. After{" "}
            <code>pagewire extension install</code> the browser starts it by itself.
          </p>
        </section>
        {state.refused.length > 0 && (
          <section class="site" aria-labelledby="refused">
            <h2 id="refused">Refused</h2>
            <dl class="refused">
              {state.refused.map(([why, times]) => (
                <div key={why}>
                  <dt>{why}</dt>
                  <dd>{times}</dd>
                </div>
              ))}
            </dl>
          </section>
        )}
      </main>
    </>,
    root,
  );
const act = subscribe(draw);
