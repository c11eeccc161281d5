// The options: every site that the user has allowed, the switches, and the refusals.
import { render } from "preact";
import { startTheme } from "../parts/theme.ts";
import { Gateway, Switch } from "./parts.tsx";
import { Parts } from "./shares.tsx";
import { maxProfile, type What } from "./permissions.ts";
import { follow, type Shown, type Site } from "./state.ts";

const root = document.getElementById("app")!;
startTheme();

function Origins({ what, sites }: { what: What; sites: readonly Site[] }) {
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

const draw = (shown: Shown) =>
  render(
    <>
      <header>
        <h1>Pagewire</h1>
      </header>
      <main>
        <section aria-labelledby="sites">
          <h2 id="sites">Allowed sites</h2>
          <Switch id="stop" shown={shown} act={act} />
          <Switch id="only" shown={shown} act={act} />
          <Switch id="front" shown={shown} act={act} />
          {!shown.origins.length && (
            <p class="empty">
              {shown.on.only
                ? "None. Allow the site in front in the popup."
                : "None. A site asks by the badge on Pagewire's button; allow it in the popup."}
            </p>
          )}
          <Origins what="offers" sites={shown.origins} />
        </section>
        {shown.shows.length > 0 && (
          <section aria-labelledby="shows">
            <h2 id="shows">Sites of which agents read everything they show</h2>
            <Origins what="shows" sites={shown.shows} />
          </section>
        )}
        {shown.parts.length > 0 && (
          <section aria-labelledby="parts">
            <h2 id="parts">Parts of pages that agents read</h2>
            <Parts shown={shown} act={act} />
          </section>
        )}
        <section aria-labelledby="gateway">
          <h2 id="gateway">Gateway</h2>
          <Gateway shown={shown} />
          <label>
            Name of this browser profile, for agents:{" "}
            <input
              id="profile"
              maxLength={maxProfile}
              value={shown.profile}
              onChange={(e) => act({ do: "profile", name: e.currentTarget.value })}
            />
          </label>
          <p class="dim">
            Agents come by <code>pagewire serve</code> on this computer. <code>pagewire extension install</code> lets
            the browser start it.
          </p>
        </section>
        {shown.refused.length > 0 && (
          <section aria-labelledby="refused">
            <h2 id="refused">Refused</h2>
            <dl class="refused">
              {shown.refused.map(([why, times]) => (
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
const act = follow(draw);
