// Components of the popup and the options for parts of pages. Their names are the user's, and their
// texts are shown as text.
import { size } from "../parts/text.ts";
import type { Do } from "./parts.tsx";
import { isPartName } from "./picked.ts";
import type { PanelState } from "./state.ts";

/** What agents read of a part, if the user has asked for it. */
function Preview({ state: { preview }, tab, part }: { state: PanelState; tab: number; part: string }) {
  if (preview?.tab !== tab || preview.part !== part) return null;
  const { text } = preview;
  if (text === undefined) return <p class="dim">The page doesn't show this part now.</p>;
  return (
    <>
      <p class="dim">{`Agents read this (${size(new TextEncoder().encode(text).length)}) and are told when it changes.`}</p>
      <pre class="preview text" tabIndex={0}>
        {text}
      </pre>
    </>
  );
}

/** The parts of sites: each is looked at in a tab of its site, renamed and forgotten. */
export function Parts({ state, here, tab, act }: { state: PanelState; here?: string; tab?: number; act: Do }) {
  const parts = state.parts.filter(({ origin }) => !here || origin === here);
  return (
    <ul class="origins">
      {parts.map(({ origin, name }) => (
        <li key={`${origin} ${name}`} data-part={name}>
          {!here && <span class="text">{origin}</span>}
          <input
            aria-label={`Name of the part ${name}`}
            maxLength={64}
            value={name}
            onChange={(e) => {
              const to = e.currentTarget.value.trim();
              e.currentTarget.value = name; // until it has that name
              act({ do: "rename", origin, name, to });
            }}
          />
          {tab !== undefined && (
            <button data-do="look" onClick={() => act({ do: "preview", tab, part: name })}>
              Look
            </button>
          )}
          <button data-do="forget" aria-label={`Forget ${name}`} onClick={() => act({ do: "forget", origin, name })}>
            Forget
          </button>
          {tab !== undefined && <Preview state={state} tab={tab} part={name} />}
        </li>
      ))}
    </ul>
  );
}

/**
 * Parts of the tab's page: one is picked, looked at, named and then shared. `leave` lets the user
 * see the page.
 */
export function Share(props: { state: PanelState; tab: number; here: string; act: Do; leave(): void }) {
  const { state, tab, here, act, leave } = props;
  const picked = state.picked?.tab === tab && state.picked.origin === here ? state.picked : undefined;
  const { preview } = state;
  const isSeen = preview?.tab === tab && preview.part === picked?.name && preview.text !== undefined;
  const share = (e: SubmitEvent) => {
    e.preventDefault();
    const name = `${new FormData(e.currentTarget as HTMLFormElement).get("name")}`.trim();
    if (picked && isSeen && isPartName(name)) act({ do: "share", picked: picked.name, name });
  };
  return (
    <section class="site" aria-label={`Parts of ${here}`}>
      <div class="buttons">
        <h2>Only parts of this site</h2>
        <button
          data-do="pick"
          onClick={() => {
            act({ do: "pick", tab });
            leave();
          }}
        >
          Share a part…
        </button>
      </div>
      <Parts {...props} />
      {picked && (
        <form onSubmit={share}>
          <Preview state={state} tab={tab} part={picked.name} />
          <label>
            Name (letters, digits, - and _):{" "}
            <input id="part" name="name" required maxLength={64} pattern="[A-Za-z0-9][A-Za-z0-9_\\-]*" />
          </label>
          <div class="buttons">
            {isSeen && (
              <button data-do="share" class="main">
                Share
              </button>
            )}
            <button data-do="drop" type="button" onClick={() => act({ do: "drop" })}>
              Don't share
            </button>
          </div>
        </form>
      )}
    </section>
  );
}
