// The side panel: the tab's sites as in the popup, and below the gateway's inspector, where a gateway listens.
import { render } from "preact";
import { App } from "../inspector/app.tsx";
import { Feed } from "../inspector/feed.ts";
import { startTheme } from "../inspector/theme.ts";
import { Gateway, originOf, Sites, Stop } from "./parts.tsx";
import { prove } from "./prove.ts";
import { follow, type Shown } from "./state.ts";

const root = document.getElementById("app")!;
const query = new URLSearchParams(location.search);
let tab = Number(query.get("tab")) || undefined;
let shown: Shown | undefined;
/** The tab's origin. */
let here = "";

const draw = () =>
  render(
    <>
      {shown && (
        <div class="sites">
          <Sites shown={shown} tab={tab} here={here} act={act} />
          <Stop shown={shown} act={act} />
          <Gateway shown={shown} />
        </div>
      )}
      <App feed={feed} redraw={draw} />
    </>,
    root,
  );
startTheme(() => draw());
const { gateway, secret } = await chrome.storage.local.get(["gateway", "secret"]);
const url = new URL("/feed", typeof gateway === "string" ? gateway : "ws://127.0.0.1:7433").href;
const feed = new Feed(
  () => draw(),
  async (talk) => {
    if (typeof secret !== "string")
      throw new Error("the native host has not given the secret: run pagewire extension install");
    await prove(secret, url, talk);
  },
  url,
);
const act = follow((now) => {
  shown = now;
  draw();
});
const follows = !tab;
const look = async () => {
  if (follows) tab = (await chrome.tabs.query({ active: true, currentWindow: true }))[0]?.id;
  here = await originOf(tab);
  draw();
};
chrome.tabs.onActivated.addListener(() => void look());
chrome.tabs.onUpdated.addListener((id) => {
  if (id === tab) void look();
});
await look();
