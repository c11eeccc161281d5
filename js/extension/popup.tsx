// The popup: the number of things that the page in front offers, what it shows, and the buttons to
// allow each.
import { render } from "preact";
import { Everything, Gateway, originOf, Sites, Switch } from "./parts.tsx";
import { Share } from "./shares.tsx";
import { subscribe, type PanelState } from "./state.ts";

const root = document.getElementById("app")!;
// A test opens this page in a tab, and names the tab that it is about.
const asked = Number(new URLSearchParams(location.search).get("tab"));
let tab = asked || undefined;
let state: PanelState | undefined;
/** The tab's origin. */
let here = "";

const draw = () => {
  if (!state) return;
  render(
    <>
      <header>
        <h1 class="brand">Pagewire</h1>
        <button id="options" class="quiet" onClick={() => void chrome.runtime.openOptionsPage()}>
          Options
        </button>
      </header>
      <main>
        <Gateway state={state} act={act} />
        <Sites state={state} tab={tab} here={here} act={act} />
        {here && tab !== undefined && <Everything state={state} tab={tab} here={here} act={act} />}
        {here && tab !== undefined && <Share state={state} tab={tab} here={here} act={act} leave={leave} />}
      </main>
      <footer>
        <Switch id="stop" state={state} act={act} />
        <Switch id="front" state={state} act={act} />
      </footer>
    </>,
    root,
  );
};
/** The user points in the page, which the popup would cover. */
const leave = () => {
  if (!asked) close();
};
const act = subscribe((now) => {
  const { picked } = now;
  const isNew = picked && picked.tab === tab && picked.name !== state?.picked?.name;
  state = now;
  if (isNew) act({ do: "preview", tab: picked.tab, part: picked.name });
  draw();
});
tab ??= (await chrome.tabs.query({ active: true, currentWindow: true }))[0]?.id;
here = await originOf(tab);
draw();
