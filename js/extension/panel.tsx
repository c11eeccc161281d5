/**
 * The panel in DevTools: parts of the inspector (js/inspector), for one tab. Like the inspector it
 * has the gateway's feed. It first proves to the gateway that it knows the secret that the native
 * host has given to the worker.
 */
import { render } from "preact";
import { Reads, Resources, Tools, Values } from "../inspector/app.tsx";
import { Feed, type Page } from "../inspector/feed.ts";
import { startTheme } from "../parts/theme.ts";
import { originOf } from "./parts.tsx";
import { prove } from "./prove.ts";
import { subscribe, type PanelState } from "./state.ts";

const tab = Number(new URLSearchParams(location.search).get("tab"));
const root = document.getElementById("app")!;
let state: PanelState | undefined;
/** The tab's origin. */
let here = "";

const { local, session } = chrome.storage;
const { gateway = "ws://127.0.0.1:7433/page", secret } = await local.get(["gateway", "secret"]);
const url = new URL("/feed", String(gateway)).href;

/** The cause and the remedy if the gateway shows nothing of the page, or "". */
function todo(page: Page | undefined): string {
  const { host } = new URL(url);
  if (typeof secret !== "string")
    return "Pagewire hasn't run in this browser yet. Run pagewire extension install, then allow a site.";
  if (feed.status === "refused") return `The gateway at ${host} refuses this panel: ${feed.why}.`;
  if (feed.status !== "connected") return `Nothing answers at ${host}. Start your agent, or run pagewire serve.`;
  if (page) return "";
  if (state?.on.stop) return "All sites are stopped. Start them with Pagewire's button in the toolbar.";
  if (here && !state?.origins.some(({ origin }) => origin === here))
    return `${here} is not allowed. Allow it with Pagewire's button in the toolbar.`;
  return "This page offers agents nothing. If it was open before you installed Pagewire, reload it.";
}

/**
 * The inspected tab's page: by the worker's name for the tab, or by its origin if the page connects
 * by itself.
 */
const pageOf = ({ pages }: Feed) =>
  pages.find(({ key }) => key.endsWith(` ${name}`)) ??
  pages.find((page) => page.transport !== "extension" && page.origin === here);

const draw = () => {
  const page = pageOf(feed);
  const missing = todo(page);
  render(
    <>
      <header>
        <h1 class="brand">
          Pagewire <small>{page?.title}</small>
        </h1>
      </header>
      <main>
        {missing ? (
          <div role="status">
            <p>{missing}</p>
            <button onClick={() => location.reload()}>Try again</button>
          </div>
        ) : (
          <>
            <Resources feed={feed} tab={page!.tab} />
            <Values feed={feed} />
            <section class="side" aria-label="Tools and reads">
              <Tools feed={feed} tab={page!.tab} />
              <Reads feed={feed} tab={page!.tab} />
            </section>
          </>
        )}
      </main>
    </>,
    root,
  );
};

const name = `${(await session.get("run")).run}-${tab}`;
startTheme(() => draw());
const look = async () => {
  here = await originOf(tab);
  draw();
};
const feed = new Feed(url, draw, (talk) => {
  if (typeof secret !== "string") throw new Error("no secret");
  return prove(secret, url, talk);
});
subscribe((now) => {
  state = now;
  void look();
});
await look();
