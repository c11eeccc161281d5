/** What the developer has pointed at, and said of it: the resource /dev/pointed. */
import { componentOf, placeOf } from "./component.ts";
import { outlineOf, selectorOf } from "./outline.ts";
import { fromRoot } from "./page.ts";
import { picker } from "./picker.ts";
import { list } from "./share.ts";

/** How many picks are kept. */
const most = 5;
/** Where they outlast a reload, which often follows the change that the words ask for. */
const storage = "pagewire.pointed";

function before(): object[] {
  try {
    const picks = JSON.parse(sessionStorage.getItem(storage) ?? "[]");
    return Array.isArray(picks) ? picks.slice(-most) : [];
  } catch {
    return []; // not ours, or this document has none
  }
}

/** Offers the developer's picks at `/dev/pointed`. */
export function startPicker(): void {
  let picks = before();
  const what = "Elements that the developer has pointed at, with the developer's words; newest last.";
  const { changed } = list("pointed", what, () => picks);
  changed();
  picker((element) => {
    // The element may be gone before the words are there.
    const component = componentOf(element);
    const at = component && placeOf(component).then((place) => place && fromRoot(place));
    const selector = selectorOf(element);
    const about = { component: component?.name, ...outlineOf(element), selector };
    return async (words) => {
      const isGone = !element.isConnected || undefined;
      const pick = { words, ...about, at: await at, path: location.pathname, isGone };
      picks = [...picks, pick].slice(-most);
      try {
        sessionStorage.setItem(storage, JSON.stringify(picks));
      } catch {} // full, or this document has none
      changed();
    };
  });
}
