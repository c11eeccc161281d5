/** The badge on the extension's button, of each tab. */
import type { Live } from "./documents.ts";

type Badged = Pick<Live, "id" | "tab" | "origin" | "offers" | "admitted">;

/**
 * The text of each tab's badge, as the browser has it. `newest` is the id of the tab's newest
 * document, whose navigation has cleared the badge.
 */
const badges = new Map<number, { text: string; newest: number }>();

/** Each tab has the number of shared resources and tools, or ? if its page is not allowed. */
export function paintBadges(all: readonly Badged[], allowed: (origin: string) => boolean): void {
  const now = new Map<number, { shared: number; asks: boolean; newest: number }>();
  for (const { id, tab, origin, offers, admitted } of all) {
    if (!offers) continue;
    const of = now.get(tab) ?? { shared: 0, asks: false, newest: 0 };
    now.set(tab, of);
    of.newest = id;
    if (admitted) of.shared += offers;
    else of.asks ||= !allowed(origin);
  }
  const paint = (tabId: number, newest: number, text: string, title: string) => {
    const before = badges.get(tabId);
    if (before?.text === text && before.newest === newest) return;
    badges.set(tabId, { text, newest });
    // The tab may have gone.
    chrome.action.setBadgeText({ tabId, text }).catch(() => {});
    chrome.action.setTitle({ tabId, title }).catch(() => {});
    chrome.action.setBadgeBackgroundColor({ tabId, color: text === "?" ? "#8a4a08" : "#0a6e62" }).catch(() => {});
  };
  for (const [tab, { shared, asks, newest }] of now) {
    const things = `${shared} ${shared === 1 ? "thing" : "things"}`;
    if (shared)
      paint(tab, newest, shared > 99 ? "99+" : `${shared}`, `Pagewire: agents may read ${things} of this page`);
    else if (asks) paint(tab, newest, "?", "Pagewire: this page would show agents its live state");
  }
  // The relay of a page that is not allowed disconnects and waits. The page leaves the list; its ?
  // stays until the tab navigates.
  for (const [tab, { text }] of badges) if (!now.has(tab) && text !== "?" && text !== "") paint(tab, 0, "", "Pagewire");
}
